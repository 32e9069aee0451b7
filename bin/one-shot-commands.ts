import { backupCommands } from './commands/backup.js'
import { clientCommands } from './commands/clients.js'
import { configCommand } from './commands/config.js'
import { databaseCommands } from './commands/database.js'
import { deadLetterCommands } from './commands/dead-letters.js'
import { deliveryCommands } from './commands/deliveries.js'
import { doctorCommand } from './commands/doctor.js'
import { envelopeCommands } from './commands/envelope.js'
import { federationCommands } from './commands/federation.js'
import { inspectCommand } from './commands/inspect.js'
import { invitationCommands } from './commands/invitations.js'
import { actionCommands } from './commands/moderation/actions.js'
import { auditCommands } from './commands/moderation/audit.js'
import { clusterCommands } from './commands/moderation/clusters.js'
import { contentCommands } from './commands/moderation/content.js'
import { filterCommands } from './commands/moderation/filters.js'
import { moderatedPeopleCommands } from './commands/moderation/people.js'
import { reportCommands } from './commands/moderation/reports.js'
import { notificationCommands } from './commands/notifications.js'
import { peopleCommands } from './commands/people.js'
import { podsCommands } from './commands/pods.js'
import { processCommands } from './commands/processes.js'
import { pruneCommand } from './commands/prune.js'
import { quarantineCommands } from './commands/quarantine.js'
import { queueCommands } from './commands/queues.js'
import { seedCommand } from './commands/seed.js'
import { storageCommands } from './commands/storage.js'
import { upgradeCommands } from './commands/upgrade.js'
import { workCommands } from './commands/work.js'

/** All commands except the long-running processes. */
export const passingCommands = [
  databaseCommands,
  backupCommands,
  peopleCommands,
  seedCommand,
  notificationCommands,
  invitationCommands,
  clientCommands,
  workCommands,
  queueCommands,
  processCommands,
  quarantineCommands,
  deadLetterCommands,
  federationCommands,
  inspectCommand,
  podsCommands,
  moderatedPeopleCommands,
  deliveryCommands,
  pruneCommand,
  storageCommands,
  upgradeCommands,
  doctorCommand,
  configCommand,
  envelopeCommands,
  auditCommands,
  reportCommands,
  contentCommands,
  filterCommands,
  actionCommands,
  clusterCommands,
] as const
