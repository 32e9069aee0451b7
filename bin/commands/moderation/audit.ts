import { type Command, Option } from 'commander'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import type { AuditEntry } from '../../../src/domain/moderation/audit.js'
import {
  type AuditFilter,
  type AuditFormat,
  auditEntryFields,
  exportAudit,
  getAuditEntry,
  listAudit,
  verifyAudit,
} from '../../../src/domain/moderation/audit.js'
import { CommandError } from '../../command-error.js'
import { readCount, readTime } from '../../options.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

interface ListOptions extends OutputOptions {
  readonly actor?: string
  readonly action?: readonly string[]
  readonly target?: string
  readonly domain?: string
  readonly since?: Date
  readonly until?: Date
  readonly limit: number
}

const ENTRIES_SHOWN = 50

export function auditCommands(program: Command): void {
  const audit = program.command('audit').description('The log of all actions of moderators and admins.')

  audit
    .command('list')
    .description('Lists entries, newest first.')
    .option('--actor <name>', 'only actions of this user (name, address or guid), of `command` or of `system`')
    .option('--action <action...>', 'only these actions')
    .option('--target <guid>', 'only actions on this target')
    .option('--domain <domain>', 'only actions on people and pods of this domain')
    .option('--since <time>', 'from this time on', readTime)
    .option('--until <time>', 'before this time', readTime)
    .option('--limit <number>', 'at most this many', readCount, ENTRIES_SHOWN)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod audit list --actor alice --since 2026-01-01')
    .action(list)

  audit
    .command('show')
    .argument('<id>', 'the number of the entry', readCount)
    .description('Shows one entry with all values.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod audit show 17')
    .action(show)

  audit
    .command('export')
    .description('Writes the whole log to standard output, oldest entry first.')
    .addOption(new Option('--format <format>', 'the format').choices(['ndjson', 'csv']).default('ndjson'))
    .option('--json', 'write lines of JSON (the default)')
    .addHelpText('after', '\nExample:\n  pod audit export --format csv > audit.csv')
    .action(exportAll)

  audit
    .command('verify')
    .description('Checks the hash chain and names the first entry that was changed.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod audit verify')
    .action(verify)
}

async function list({ actor, action: actions, target, domain, since, until, ...options }: ListOptions): Promise<void> {
  const filter: AuditFilter = { actor, actions, target, domain, since, until }
  const { items } = await withPod((services) => listAudit(services, COMMAND_ACTOR, filter, { limit: options.limit }))
  print(options, items.map(auditEntryFields), [
    ...table(items.map(cellsOf)).map(printable),
    items.length === 1 ? '1 entry' : `${items.length} entries`,
  ])
}

async function show(id: number, options: OutputOptions): Promise<void> {
  const entry = auditEntryFields(await withPod((services) => getAuditEntry(services, COMMAND_ACTOR, id)))
  const rows = Object.entries(entry).map(([name, value]) => [
    name.replaceAll('_', ' '),
    typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '-'),
  ])
  print(options, entry, table(rows).map(printable))
}

async function exportAll({ format }: { readonly format: AuditFormat }): Promise<void> {
  await withPod(async (services) => {
    const entries = await exportAudit(services, COMMAND_ACTOR, format)
    for await (const text of entries) process.stdout.write(text)
  })
}

async function verify(options: OutputOptions): Promise<void> {
  const { entries, brokenId } = await withPod((services) => verifyAudit(services))
  if (brokenId !== undefined)
    throw new CommandError(`Entry ${brokenId} of the audit log was changed, or one before it deleted.`)
  print(options, { entries }, [`The audit log is intact: ${entries === 1 ? '1 entry' : `${entries} entries`}.`])
}

function cellsOf({ id, at, actor, action, target, reason }: AuditEntry): readonly string[] {
  return [String(id), at.toISOString(), actor.name, action, target.label, reason ?? '']
}
