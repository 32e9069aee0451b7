import type { Command } from 'commander'

/** The sections of docs/commands.md. */
export const COMMAND_SUBJECTS = [
  'Run and upgrade',
  'Accounts',
  'Work, failures and other pods',
  'Moderation',
  'Backup and storage',
] as const

interface CommandGroup {
  /** First words of the commands that the module adds. */
  readonly words: readonly string[]
  readonly subject: (typeof COMMAND_SUBJECTS)[number]
  load(): Promise<(program: Command) => void>
}

/** A module is loaded when one of its commands is used: all of them together take longer to load than most commands run. */
export const commandGroups: readonly CommandGroup[] = [
  {
    words: ['start', 'web', 'worker'],
    subject: 'Run and upgrade',
    load: async () => (await import('./commands/run.js')).runCommands,
  },
  { words: ['db'], subject: 'Run and upgrade', load: async () => (await import('./commands/db.js')).databaseCommands },
  {
    words: ['backup'],
    subject: 'Backup and storage',
    load: async () => (await import('./commands/backup.js')).backupCommands,
  },
  {
    words: ['take-over'],
    subject: 'Accounts',
    load: async () => (await import('./commands/take-over.js')).takeOverCommand,
  },
  { words: ['user'], subject: 'Accounts', load: async () => (await import('./commands/user.js')).peopleCommands },
  {
    words: ['archive'],
    subject: 'Accounts',
    load: async () => (await import('./commands/archives/archive.js')).archiveCommands,
  },
  { words: ['seed'], subject: 'Run and upgrade', load: async () => (await import('./commands/seed.js')).seedCommand },
  {
    words: ['notify'],
    subject: 'Accounts',
    load: async () => (await import('./commands/notify.js')).notificationCommands,
  },
  { words: ['mail'], subject: 'Accounts', load: async () => (await import('./commands/mail.js')).mailCommands },
  {
    words: ['invitations', 'invite'],
    subject: 'Accounts',
    load: async () => (await import('./commands/invitations.js')).invitationCommands,
  },
  {
    words: ['sign-ups'],
    subject: 'Accounts',
    load: async () => (await import('./commands/sign-ups.js')).signUpCommands,
  },
  {
    words: ['mail-rules'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/network-rules.js')).mailRuleCommands,
  },
  {
    words: ['ip-rules'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/network-rules.js')).ipRuleCommands,
  },
  {
    words: ['token', 'clients'],
    subject: 'Accounts',
    load: async () => (await import('./commands/token.js')).clientCommands,
  },
  {
    words: ['status', 'wait-idle'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/status.js')).workCommands,
  },
  {
    words: ['queues'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/operations/queues.js')).queueCommands,
  },
  {
    words: ['workers'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/operations/workers.js')).processCommands,
  },
  {
    words: ['checks'],
    subject: 'Run and upgrade',
    load: async () => (await import('./commands/operations/checks.js')).checksCommand,
  },
  {
    words: ['trace'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/operations/trace.js')).traceCommand,
  },
  {
    words: ['quarantine'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/operations/quarantine.js')).quarantineCommands,
  },
  {
    words: ['dead'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/operations/dead.js')).deadLetterCommands,
  },
  {
    words: ['fetch', 'probe'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/fetch-and-probe.js')).federationCommands,
  },
  {
    words: ['inspect'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/inspect.js')).inspectCommand,
  },
  {
    words: ['pods'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/pods.js')).podsCommands,
  },
  {
    words: ['people'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/people.js')).moderatedPeopleCommands,
  },
  {
    words: ['post'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/post.js')).deliveryCommands,
  },
  {
    words: ['prune'],
    subject: 'Backup and storage',
    load: async () => (await import('./commands/prune.js')).pruneCommand,
  },
  {
    words: ['storage'],
    subject: 'Backup and storage',
    load: async () => (await import('./commands/storage.js')).storageCommands,
  },
  {
    words: ['upgrade'],
    subject: 'Run and upgrade',
    load: async () => (await import('./commands/upgrade.js')).upgradeCommands,
  },
  {
    words: ['doctor'],
    subject: 'Run and upgrade',
    load: async () => (await import('./commands/doctor.js')).doctorCommand,
  },
  {
    words: ['config'],
    subject: 'Run and upgrade',
    load: async () => (await import('./commands/config.js')).configCommand,
  },
  {
    words: ['envelope'],
    subject: 'Work, failures and other pods',
    load: async () => (await import('./commands/envelope.js')).envelopeCommands,
  },
  {
    words: ['audit'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/audit.js')).auditCommands,
  },
  {
    words: ['reports'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/reports.js')).reportCommands,
  },
  {
    words: ['content'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/content.js')).contentCommands,
  },
  {
    words: ['filters'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/filters.js')).filterCommands,
  },
  {
    words: ['actions'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/actions.js')).actionCommands,
  },
  {
    words: ['clusters'],
    subject: 'Moderation',
    load: async () => (await import('./commands/moderation/clusters.js')).clusterCommands,
  },
]
