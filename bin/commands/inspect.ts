import type { Command } from 'commander'
import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import type { InboundMessage, WaitingMessage } from '../../src/federation/inbound/batch.js'
import { isFetchable, splitEntityKey, toFetchable } from '../../src/jobs/waiting/entity-key.js'
import { Person } from '../../src/persistence/models/person.js'
import { entityToJson } from '../../src/protocol/entities/entity-json.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import type { Services } from '../../src/services/services.js'
import { CommandError } from '../command-error.js'
import { describeResult, describeSteps, type StepReport } from '../inspect/describe.js'
import { dryRun, type EnvelopeDryRun } from '../inspect/dry-run.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { readInput } from '../read-input.js'
import { withPod } from '../with-pod.js'

interface InspectOptions extends OutputOptions {
  readonly recipient?: string
  readonly fetch?: boolean
}

/** Missing entities and people to fetch for one message: a key, a parent and its author. Longer chains are not followed. */
const MAX_FETCHES = 6

export function inspectCommand(program: Command): void {
  program
    .command('inspect [file]')
    .description(
      'Dry-runs an incoming message through the whole pipeline and reports each step. Nothing is saved. Without a file, it reads standard input.',
    )
    .option('--recipient <name>', 'the local recipient of an encrypted message: a username or address')
    .option('--fetch', 'first fetch and store what the message refers to')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod inspect message.xml\n  pod inspect message.json --recipient alice')
    .action(inspect)
}

async function inspect(file: string | undefined, options: InspectOptions, command: Command): Promise<void> {
  const envelope = await readInput(file, command)
  const isEncrypted = envelope.trimStart().startsWith('{')
  if (isEncrypted && options.recipient === undefined) {
    command.error('error: an encrypted message needs --recipient, with the person it is for.')
  }
  const { run, fetched } = await withPod(async (services) => {
    const recipientGuid = isEncrypted ? await guidOf(services, options.recipient ?? '') : undefined
    const message = { envelope, acceptedAt: services.now(), ...(recipientGuid !== undefined && { recipientGuid }) }
    return options.fetch ? dryRunWithFetches(services, message) : { run: await dryRun(services, message), fetched: [] }
  })
  const steps = [...fetched, ...describeSteps(run)]
  const lines = [...table(steps.map(({ step, message }) => [step, message])), '', describeResult(run)]
  print(options, jsonOf(run, steps), lines.map(printable))
  if (run.rejected !== undefined) throw new CommandError(`This pod rejects the message: ${run.rejected.fault}.`)
}

/** Fetches missing entities and people one by one. Those that cannot be fetched stay missing. */
async function dryRunWithFetches(
  services: Services,
  message: InboundMessage,
): Promise<{ readonly run: EnvelopeDryRun; readonly fetched: readonly StepReport[] }> {
  const fetchReports = new Map<string, StepReport>()
  for (;;) {
    const run = await dryRun(services, message)
    const { waiting } = run
    const isNew =
      waiting?.fetchFrom !== undefined && !fetchReports.has(waiting.waitsFor) && fetchReports.size < MAX_FETCHES
    if (!isNew) return { run, fetched: [...fetchReports.values()] }
    fetchReports.set(waiting.waitsFor, { step: 'fetch', message: await fetchMissing(services, waiting) })
  }
}

async function fetchMissing(
  services: Services,
  { waitsFor, fetchFrom = '', fallbackFetchFrom, author }: WaitingMessage,
): Promise<string> {
  const [kind, name] = splitEntityKey(waitsFor)
  try {
    if (kind === 'person') await discoverPerson(services, name, { ignoresRecentFailures: true })
    else if (isFetchable(kind)) {
      const fetchRequest = {
        ...toFetchable(kind),
        guid: name,
        from: fetchFrom,
        orFrom: fallbackFetchFrom,
        author,
        depth: 0,
      }
      await fetchEntity(services, fetchRequest, { ignoresRecentFailures: true })
    } else return `The ${kind} ${name} cannot be fetched; its author must send it.`
    return `The ${kind} ${name} was fetched and saved.`
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return `The ${kind} ${name} could not be fetched: ${error.message}.`
  }
}

async function guidOf(services: Services, name: string): Promise<string> {
  const address = name.includes('@') ? name : `${name}@${services.config.host}`
  const person = await Person.query(services.db).findOne({ address: address.toLowerCase() }).whereNull('podId')
  if (person === undefined) throw new CommandError(`There is no local account named ${name}.`)
  return person.guid
}

function jsonOf(
  { verified: message, rejected, ignored, waiting, effects }: EnvelopeDryRun,
  steps: readonly StepReport[],
): object {
  const { tables, notifications, outgoing, jobs } = effects
  const end = rejected ? 'refused' : waiting ? 'waits' : ignored || tables.length === 0 ? 'nothing' : 'stored'
  return {
    end,
    fault: rejected?.fault ?? waiting?.fault ?? null,
    reason: rejected?.reason ?? ignored?.reason ?? null,
    waits_for: waiting?.waitsFor ?? null,
    sender: message?.sender ?? null,
    recipient: message?.recipient?.address ?? null,
    author_signature: message?.signature ?? null,
    entity: message === undefined ? null : entityToJson(message.entity),
    steps,
    rows: tables,
    notifications,
    outgoing,
    jobs,
  }
}
