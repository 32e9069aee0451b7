import type { Command } from 'commander'

interface CommandGroup {
  /** First words of the commands that the module adds. */
  readonly words: readonly string[]
  load(): Promise<(program: Command) => void>
}

/** A module is loaded when one of its commands is used: all of them together take longer to load than most commands run. */
export const commandGroups: readonly CommandGroup[] = [
  { words: ['start', 'web', 'worker'], load: async () => (await import('./commands/run.js')).runCommands },
  { words: ['db'], load: async () => (await import('./commands/db.js')).databaseCommands },
  { words: ['backup'], load: async () => (await import('./commands/backup.js')).backupCommands },
  { words: ['take-over'], load: async () => (await import('./commands/take-over.js')).takeOverCommand },
  { words: ['user'], load: async () => (await import('./commands/user.js')).peopleCommands },
  { words: ['archive'], load: async () => (await import('./commands/archives/archive.js')).archiveCommands },
  { words: ['seed'], load: async () => (await import('./commands/seed.js')).seedCommand },
  { words: ['notify'], load: async () => (await import('./commands/notify.js')).notificationCommands },
  { words: ['mail'], load: async () => (await import('./commands/mail.js')).mailCommands },
  {
    words: ['invitations', 'invite'],
    load: async () => (await import('./commands/invitations.js')).invitationCommands,
  },
  { words: ['sign-ups'], load: async () => (await import('./commands/sign-ups.js')).signUpCommands },
  {
    words: ['mail-rules'],
    load: async () => (await import('./commands/moderation/network-rules.js')).mailRuleCommands,
  },
  { words: ['ip-rules'], load: async () => (await import('./commands/moderation/network-rules.js')).ipRuleCommands },
  { words: ['token', 'clients'], load: async () => (await import('./commands/token.js')).clientCommands },
  { words: ['status', 'wait-idle'], load: async () => (await import('./commands/status.js')).workCommands },
  { words: ['queues'], load: async () => (await import('./commands/operations/queues.js')).queueCommands },
  { words: ['workers'], load: async () => (await import('./commands/operations/workers.js')).processCommands },
  { words: ['checks'], load: async () => (await import('./commands/operations/checks.js')).checksCommand },
  { words: ['trace'], load: async () => (await import('./commands/operations/trace.js')).traceCommand },
  { words: ['quarantine'], load: async () => (await import('./commands/operations/quarantine.js')).quarantineCommands },
  { words: ['dead'], load: async () => (await import('./commands/operations/dead.js')).deadLetterCommands },
  { words: ['fetch', 'probe'], load: async () => (await import('./commands/fetch-and-probe.js')).federationCommands },
  { words: ['inspect'], load: async () => (await import('./commands/inspect.js')).inspectCommand },
  { words: ['pods'], load: async () => (await import('./commands/pods.js')).podsCommands },
  { words: ['people'], load: async () => (await import('./commands/moderation/people.js')).moderatedPeopleCommands },
  { words: ['post'], load: async () => (await import('./commands/post.js')).deliveryCommands },
  { words: ['prune'], load: async () => (await import('./commands/prune.js')).pruneCommand },
  { words: ['storage'], load: async () => (await import('./commands/storage.js')).storageCommands },
  { words: ['upgrade'], load: async () => (await import('./commands/upgrade.js')).upgradeCommands },
  { words: ['doctor'], load: async () => (await import('./commands/doctor.js')).doctorCommand },
  { words: ['config'], load: async () => (await import('./commands/config.js')).configCommand },
  { words: ['envelope'], load: async () => (await import('./commands/envelope.js')).envelopeCommands },
  { words: ['audit'], load: async () => (await import('./commands/moderation/audit.js')).auditCommands },
  { words: ['reports'], load: async () => (await import('./commands/moderation/reports.js')).reportCommands },
  { words: ['content'], load: async () => (await import('./commands/moderation/content.js')).contentCommands },
  { words: ['filters'], load: async () => (await import('./commands/moderation/filters.js')).filterCommands },
  { words: ['actions'], load: async () => (await import('./commands/moderation/actions.js')).actionCommands },
  { words: ['clusters'], load: async () => (await import('./commands/moderation/clusters.js')).clusterCommands },
]
