import { parse } from 'csv-parse/sync'
import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import {
  applyImportRows,
  chooseRows,
  countImportRows,
  countRelationsByHost,
  findPodRuleImport,
  type ImportCount,
  type ImportMode,
  type ImportRow,
  insertPodRuleImport,
  listImportRows,
  listImportRowsFrom,
  listPodRuleImports,
  lockPodRuleImport,
  type PodRuleImport,
  readRuleStates,
  type StoredImportRow,
  setPodRuleImportState,
  undoImportRows,
} from '../../../persistence/moderation/pod-rule-imports.js'
import { lockPodRules, type PodRule } from '../../../persistence/moderation/pod-rules.js'
import { firstCharacters } from '../../../protocol/values.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import {
  type BackgroundTask,
  type BackgroundTaskHandler,
  type BackgroundTaskHandlers,
  startBackgroundTask,
} from '../../operations/background-tasks.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type ActionOptions, requireReason } from '../record-action.js'
import { enforcePodRules } from './pod-rules.js'
import { nameOfRule, type RuleDomain, readRuleDomain } from './rule-domain.js'

export interface PodRuleImportPlan {
  readonly plan: PodRuleImport
  readonly rows: readonly StoredImportRow[]
}

/** Reads a list of domains and stores what an import would do with each row. Changes no rule. */
export async function planPodRuleImport(
  services: ModerationServices,
  actor: Actor,
  { csv, mode }: { readonly csv: string; readonly mode: ImportMode },
): Promise<PodRuleImportPlan> {
  requirePower(actor, 'administration')
  const lines = readList(csv)
  const [rules, relations] = await Promise.all([readRuleStates(services.db), countRelationsByHost(services.db)])
  const decide = createRuleDecider(services, mode, rules, relations)
  return inRequestTransaction(services, async (transaction) => {
    const plan = await insertPodRuleImport(transaction, { mode, createdBy: actor.name }, lines.map(decide))
    return { plan, rows: await listImportRows(transaction, plan.id) }
  })
}

export async function getPodRuleImport(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<PodRuleImportPlan> {
  return { plan: await readImportWithoutRows({ db }, actor, id), rows: await listImportRows(db, id) }
}

export async function readImportWithoutRows(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<PodRuleImport> {
  requirePower(actor, 'administration')
  const plan = await findPodRuleImport(db, id)
  if (plan === undefined) throw importNotFound()
  return plan
}

/** A plan with its counts and a part of its rows: a list may have 20 000. */
export interface ImportPart {
  readonly plan: PodRuleImport
  readonly counts: readonly ImportCount[]
  readonly rows: readonly StoredImportRow[]
}

export async function readImportPart(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
  part: Parameters<typeof listImportRowsFrom>[2],
): Promise<ImportPart> {
  const plan = await readImportWithoutRows({ db }, actor, id)
  return { plan, counts: await countImportRows(db, id), rows: await listImportRowsFrom(db, id, part) }
}

const LATEST_IMPORTS = 20

export function listLatestImports({ db }: Pick<Services, 'db'>, actor: Actor): Promise<readonly PodRuleImport[]> {
  requirePower(actor, 'administration')
  return listPodRuleImports(db, LATEST_IMPORTS)
}

export interface ApplyOptions extends ActionOptions {
  /** The rows to apply; undefined: those that the plan chooses. */
  readonly ids?: readonly number[] | undefined
  /** The number of rows, typed by the moderator. */
  readonly confirm?: string | undefined
}

/** Begins to apply the chosen rows of a plan. */
export async function applyPodRuleImport(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { ids, confirm, ...options }: ApplyOptions,
): Promise<BackgroundTask> {
  return startImportStep(services, actor, id, {
    from: 'planned',
    to: 'applied',
    kind: APPLY,
    confirm,
    options,
    count: (transaction) => chooseRows(transaction, id, ids),
  })
}

/** Begins to take an import back. Rules that were changed since stay. */
export async function undoPodRuleImport(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { confirm, ...options }: Omit<ApplyOptions, 'ids'>,
): Promise<BackgroundTask> {
  return startImportStep(services, actor, id, {
    from: 'applied',
    to: 'undone',
    kind: UNDO,
    confirm,
    options,
    count: (transaction) => chooseRows(transaction, id, undefined),
  })
}

interface ImportStep {
  readonly from: PodRuleImport['state']
  readonly to: PodRuleImport['state']
  readonly kind: typeof APPLY | typeof UNDO
  readonly confirm: string | undefined
  readonly options: ActionOptions
  count(transaction: Knex.Transaction): Promise<number>
}

async function startImportStep(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { from, to, kind, confirm, options, count }: ImportStep,
): Promise<BackgroundTask> {
  requirePower(actor, 'administration')
  return inRequestTransaction(services, async (transaction) => {
    const plan = await lockPodRuleImport(transaction, id)
    if (plan === undefined) throw importNotFound()
    const reason = requireReason(options)
    if (plan.state !== from) throw new Refusal('bad_transition', `The import is ${plan.state}.`)
    const total = await count(transaction)
    if (confirm !== String(total)) {
      throw new Refusal('confirmation_needed', `Set confirm to ${total}, the number of rows.`, {
        details: { preview: { rows: total } },
      })
    }
    await setPodRuleImportState(transaction, id, to)
    return startBackgroundTask(services, transaction, actor, { kind, target: String(id), total, reason })
  })
}

const APPLY = 'pod_rules.import' as const
const UNDO = 'pod_rules.undo_import' as const

export const importTaskHandlers: Pick<BackgroundTaskHandlers, typeof APPLY | typeof UNDO> = {
  [APPLY]: handlerOf('applied', applyImportRows),
  [UNDO]: handlerOf('undone', (transaction, plan, { limit, at }) => undoImportRows(transaction, plan, { limit, at })),
}

function handlerOf(state: PodRuleImport['state'], runRows: typeof applyImportRows): BackgroundTaskHandler {
  return {
    async runChunk(services, transaction, { target, reason }) {
      await lockPodRules(transaction)
      const plan = await findPodRuleImport(transaction, Number(target))
      // An undo ends an application that has not reached all rows.
      if (plan?.state !== state) return { done: 0, skipped: 0 }
      const chunk = { reason, limit: MODERATION_LIMITS.rowsOfChunk, at: services.now() }
      const progress = await runRows(transaction, plan, chunk)
      if (progress.done > 0) await enforcePodRules(services, transaction)
      return progress
    },

    async complete(services, transaction, { kind, target, reason, actor, done, skipped }) {
      const { via, clientId, traceId, ...person } = actor
      const entry = { action: kind, reason, batchId: Number(target), after: { rules: done, skipped } }
      const auditTarget = { type: 'pod_rule_import', guid: target, label: `import ${target}` }
      await appendAuditEntry(
        transaction,
        { ...entry, actor: person, via, clientId, traceId, target: auditTarget },
        services.now(),
      )
    },
  }
}

interface ListLine {
  readonly domain: string
  readonly severity: string
  readonly publicComment: string
  readonly obfuscate: boolean
  readonly rejectMedia: boolean
  readonly rejectReports: boolean
}

/** Reads a block list of Mastodon with any columns, or a plain list of domains. */
function readList(csv: string): readonly ListLine[] {
  if (Buffer.byteLength(csv) > MODERATION_LIMITS.importBytes) throw tooManyRows()
  const records = parseRecords(csv.replaceAll('\0', '')) // PostgreSQL stores no NUL
  const names = (records[0] ?? []).map((cell) => cell.replace(/^#/, '').trim().toLowerCase())
  const hasHeader = names.includes('domain')
  const lines = hasHeader ? records.slice(1) : records.filter(([cell = '']) => !cell.startsWith('#'))
  if (lines.length > MODERATION_LIMITS.importRows) throw tooManyRows()
  return lines.map((cells) => {
    const cell = (name: string) => (hasHeader ? (cells[names.indexOf(name)] ?? '').trim() : '')
    const isTrue = (name: string) => /^(true|t|yes|1)$/i.test(cell(name))
    return {
      domain: hasHeader ? cell('domain') : (cells[0] ?? '').trim(),
      severity: cell('severity').toLowerCase() || 'suspend',
      publicComment: firstCharacters(cell('public_comment'), MODERATION_LIMITS.reasonCharacters),
      obfuscate: isTrue('obfuscate'),
      rejectMedia: isTrue('reject_media'),
      rejectReports: isTrue('reject_reports'),
    }
  })
}

function parseRecords(csv: string): string[][] {
  try {
    return parse(csv, { bom: true, relaxColumnCount: true, skipEmptyLines: true })
  } catch (error) {
    throw new Refusal('csv_invalid', 'The file is not valid CSV.', { cause: error })
  }
}

const STATES: ReadonlyMap<string, ImportRow['state']> = new Map([
  ['suspend', 'blocked'],
  ['silence', 'limited'],
  ['limit', 'limited'],
])
const RANKS: Readonly<Record<PodRule['state'], number>> = { normal: 0, limited: 1, blocked: 2 }

/** Decides about each row in the order of the list; a second row for a domain is skipped. */
function createRuleDecider(
  { config }: Pick<Services, 'config'>,
  mode: ImportMode,
  rules: Awaited<ReturnType<typeof readRuleStates>>,
  relations: Awaited<ReturnType<typeof countRelationsByHost>>,
): (line: ListLine) => ImportRow {
  const ruleOf = new Map(rules.map((rule) => [nameOfRule(rule), rule]))
  const contactsOf = new Map<string, number>()
  for (const { host, port, contacts } of relations) {
    for (const name of domainsAbove(host).flatMap((domain) => namesOfRules(domain, port)))
      contactsOf.set(name, (contactsOf.get(name) ?? 0) + contacts)
  }
  const seenNames = new Set<string>()

  return (line) => {
    const { severity, ...values } = line
    const state = STATES.get(severity) ?? null
    const skipped = (fault: string): ImportRow => ({
      ...values,
      port: null,
      severity,
      state,
      subdomains: true,
      verdict: 'skip',
      fault,
      contacts: 0,
      chosen: false,
    })
    if (/[*]/.test(line.domain.replace(/^\*\./, ''))) return skipped('obfuscated')
    const rule = readDomain(line.domain)
    if (typeof rule === 'string') return skipped(rule)
    if (state === null) return skipped(severity === 'noop' ? 'noop' : 'severity')
    const name = nameOfRule(rule)
    if (seenNames.has(name)) return skipped('duplicate')
    seenNames.add(name)

    const contacts = contactsOf.get(name) ?? 0
    const verdict = verdictOf(rule, state)
    const isChosen = verdict !== 'covered' && contacts === 0
    return {
      ...values,
      domain: rule.domain,
      port: rule.port,
      severity,
      state,
      subdomains: true,
      verdict,
      fault: null,
      contacts,
      chosen: isChosen,
    }
  }

  /** The domain of a row, or why it is skipped. */
  function readDomain(text: string): RuleDomain | string {
    try {
      return readRuleDomain(config, { domain: text })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return error.reason === 'domain_invalid' ? 'invalid' : error.reason
    }
  }

  /** A rule for the domain itself is changed as the mode says; a wider one may cover the row. */
  function verdictOf(rule: RuleDomain, state: PodRule['state']): 'add' | 'change' | 'covered' {
    const existingRule = ruleOf.get(nameOfRule(rule))
    if (existingRule !== undefined) {
      const isChanged = mode === 'replace' ? existingRule.state !== state : RANKS[state] > RANKS[existingRule.state]
      return mode !== 'keep' && isChanged ? 'change' : 'covered'
    }
    const [wider] = domainsAbove(rule.domain).flatMap((above) =>
      namesOfRules(above, rule.port).flatMap((name) => {
        const ruleAbove = ruleOf.get(name)
        return ruleAbove !== undefined && (ruleAbove.subdomains || above === rule.domain) ? [ruleAbove] : []
      }),
    )
    return wider !== undefined && RANKS[wider.state] >= RANKS[state] ? 'covered' : 'add'
  }
}

/** The names of the rules for a domain that hold for a port, in their order: with the port before without. */
function namesOfRules(domain: string, port: number | null): readonly string[] {
  return port === null ? [domain] : [nameOfRule({ domain, port }), domain]
}

/** `a.b.example`, `b.example`, `example`. */
function domainsAbove(host: string): readonly string[] {
  const labels = host.replace(/^www\./, '').split('.')
  return labels.map((_label, index) => labels.slice(index).join('.'))
}

function tooManyRows(): Refusal {
  const { importRows, importBytes } = MODERATION_LIMITS
  return new Refusal('too_many_rows', `A list must have at most ${importRows} rows and ${importBytes} bytes.`)
}

function importNotFound(): Refusal {
  return new Refusal('import_not_found', 'There is no import with this number.')
}
