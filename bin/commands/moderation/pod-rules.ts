import { readFile } from 'node:fs/promises'
import { Argument, type Command, Option } from 'commander'
import {
  applyPodRuleImport,
  getPodRuleImport,
  planPodRuleImport,
  undoPodRuleImport,
} from '../../../src/domain/moderation/pods/pod-rule-imports.js'
import { exportPodRules } from '../../../src/domain/moderation/pods/pod-rule-lists.js'
import {
  listRules,
  previewDetails,
  previewPodRule,
  setPodRule,
  unsetPodRule,
} from '../../../src/domain/moderation/pods/pod-rules.js'
import { nameOfRule, type RuleDomainInput } from '../../../src/domain/moderation/pods/rule-domain.js'
import type { ImportMode } from '../../../src/persistence/moderation/pod-rule-imports.js'
import type { PodRule } from '../../../src/persistence/moderation/pod-rules.js'
import { presentOperation } from '../../../src/web/presenters/operations.js'
import { presentPodRule, presentPodRuleImport } from '../../../src/web/presenters/pod-rules.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { readCount, readEnd } from '../../options.js'
import { countText, print, printable, table } from '../../output.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

const RULE_BATCH_SIZE = 1_000

export function podRuleCommands(pods: Command): void {
  withActorOptions(pods.command('set'))
    .addArgument(domainArgument())
    .addArgument(new Argument('<state>').choices(['normal', 'limited', 'blocked']))
    .description('Creates or changes the rule for a domain and its subdomains, known or not. `normal` is an exception.')
    .option('--exact', 'not for subdomains')
    .option('--until <time>', 'the end: a day, a time, or a duration from now like 7d', readEnd)
    .option('--public-comment <text>', 'for the exported list')
    .option('--dry-run', 'only show the effect of the rule')
    .option('--yes', 'confirm a block that ends relations of local users')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods set spam.example blocked --reason "Spam"')
    .action(set)

  withActorOptions(pods.command('unset'))
    .addArgument(domainArgument())
    .description('Deletes the rule for a domain.')
    .option('--dry-run', 'only show what the rule concerns')
    .option('--yes', 'confirm that a wider rule then blocks pods with relations to local users')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods unset spam.example --reason "They have moderators now"')
    .action(unset)

  pods
    .command('rules')
    .description('Lists the rules for pods, newest first.')
    .addOption(new Option('--state <state>', 'only rules for this state').choices(['normal', 'limited', 'blocked']))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods rules --state blocked')
    .action(rules)

  pods
    .command('preview')
    .addArgument(domainArgument())
    .description('Counts the pods, people, relations and content affected by a rule for a domain.')
    .option('--exact', 'not for subdomains')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods preview spam.example')
    .action((text: string, { exact, ...options }: SetOptions) =>
      printRulePreview({ ...readDomain(text), subdomains: !exact }, options),
    )

  pods
    .command('export')
    .description('Prints the rules as CSV with the columns of Mastodon.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods export > rules.csv')
    .action(exportRules)

  withActorOptions(pods.command('import'))
    .argument('<file>', 'a domain block list of Mastodon (CSV), or a list of domains')
    .description('Previews an import of rules, and applies it with --yes. Rows that end relations are not selected.')
    .addOption(
      new Option('--mode <mode>', 'for domains that have a rule')
        .choices(['keep', 'stricter', 'replace'])
        .default('keep'),
    )
    .option('--yes', 'apply the plan')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods import rules.csv --mode stricter --reason "Shared list" --yes')
    .action(importRules)

  withConfirmation(withActorOptions(pods.command('undo-import')))
    .argument('<id>', 'the number of the import', readCount)
    .description('Undoes the rules of an import that have not changed since.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods undo-import 3 --reason "A bad list" --yes')
    .action(undoImportOf)
}

interface ImportOptions extends ActorOptions {
  readonly mode: ImportMode
  readonly yes?: boolean
}

async function importRules(file: string, { mode, yes, reason, ...options }: ImportOptions): Promise<void> {
  const csv = await readFile(file, 'utf8')
  const { plan, task } = await withPod(async (services) => {
    const actor = await getActor(services, options, 'administration')
    const plan = presentPodRuleImport(await planPodRuleImport(services, actor, { csv, mode }))
    if (!yes) return { plan, task: undefined }
    await waitForQueue(services.jobs)
    const confirm = String(plan.preview.chosen)
    return { plan, task: await applyPodRuleImport(services, actor, plan.id, { reason, confirm }) }
  })
  const { add, change, covered, skip, chosen } = plan.preview
  const rows = plan.rows
    .filter(({ verdict, chosen: isChosen }) => verdict === 'skip' || (verdict !== 'covered' && !isChosen))
    .map(({ domain, port, fault, preview: { contacts } }) => [
      nameOfRule({ domain, port }),
      fault ?? `${contacts} relations, not chosen`,
    ])
  print(options, { ...plan, operation: task ? presentOperation(task) : null }, [
    `import ${plan.id}: ${add} new, ${change} changed, ${covered} covered, ${skip} skipped; ${chosen} chosen`,
    ...table(rows).map(printable),
    task === undefined ? 'Nothing is changed yet: add --yes to apply it.' : `operation ${task.id} is queued`,
  ])
}

async function undoImportOf(id: number, { yes, reason, ...options }: Omit<ImportOptions, 'mode'>): Promise<void> {
  const task = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    const actor = await getActor(services, options, 'administration')
    const { rows } = await getPodRuleImport(services, actor, id)
    const confirm = yes ? String(rows.filter(({ chosen }) => chosen).length) : undefined
    return undoPodRuleImport(services, actor, id, { reason, confirm })
  })
  print(options, presentOperation(task), [`operation ${task.id} is queued`])
}

async function exportRules(options: ActorOptions): Promise<void> {
  const csv = await withPod(async (services) =>
    exportPodRules(services, await getActor(services, options, 'moderation')),
  )
  if (options.json) print(options, { csv }, [])
  else process.stdout.write(csv)
}

interface SetOptions extends ActorOptions {
  readonly exact?: boolean
  readonly until?: Date
  readonly publicComment?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

async function set(
  text: string,
  state: PodRule['state'],
  { exact, until, publicComment, dryRun, yes, reason, ...options }: SetOptions,
): Promise<void> {
  const domain = { ...readDomain(text), subdomains: !exact }
  if (dryRun) return printRulePreview(domain, options)
  const { rule, changed } = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    const actor = await getActor(services, options, 'moderation')
    const confirm = yes ? await storedDomain(services, actor, domain) : undefined
    return setPodRule(services, actor, { ...domain, state, until: until ?? null, publicComment }, { reason, confirm })
  })
  print(options, { ...presentPodRule(rule), changed }, [
    `${nameOfRule(rule)} is ${rule.state}${changed ? '' : ', as before'}; ${rule.knownPods === 1 ? '1 known pod' : `${rule.knownPods} known pods`}.`,
  ])
}

async function storedDomain(
  services: Parameters<typeof previewPodRule>[0],
  actor: Parameters<typeof previewPodRule>[1],
  domain: RuleDomainInput,
): Promise<string> {
  return (await previewPodRule(services, actor, domain)).domain
}

async function unset(
  text: string,
  { dryRun, yes, reason, ...options }: Pick<SetOptions, keyof ActorOptions | 'dryRun' | 'yes'>,
): Promise<void> {
  const domain = readDomain(text)
  if (dryRun) return printRulePreview(domain, options)
  const { changed } = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    const actor = await getActor(services, options, 'moderation')
    const confirm = yes ? await storedDomain(services, actor, domain) : undefined
    return unsetPodRule(services, actor, domain, { reason, confirm })
  })
  print(options, { changed }, [changed ? 'The rule is deleted.' : 'There is no such rule.'])
}

async function rules({ state, ...options }: ActorOptions & { readonly state?: PodRule['state'] }): Promise<void> {
  const rulePage = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    return listRules(services, actor, { state }, { limit: RULE_BATCH_SIZE })
  })
  const rows = rulePage.items.map((rule) => [
    nameOfRule(rule),
    rule.state,
    rule.subdomains ? 'with subdomains' : 'exact',
    rule.until?.toISOString() ?? '-',
    rule.reason,
  ])
  print(options, rulePage.items.map(presentPodRule), [
    ...table([['domain', 'state', 'subdomains', 'until', 'reason'], ...rows]).map(printable),
    rulePage.hasOlder ? `the newest ${RULE_BATCH_SIZE} rules` : rows.length === 1 ? '1 rule' : `${rows.length} rules`,
  ])
}

/** Prints what a rule for a domain would concern. */
export async function printRulePreview(domain: RuleDomainInput, options: ActorOptions): Promise<void> {
  const details = previewDetails(
    await withPod(async (services) =>
      previewPodRule(services, await getActor(services, options, 'moderation'), domain),
    ),
  )
  const { pods, ...counts } = details
  const rows = Object.entries(counts).map(([name, value]) => [
    name.replaceAll('_', ' '),
    typeof value === 'object' && value !== null ? countText(value) : String(value ?? 'every port'),
  ])
  print(options, details, [
    ...table(rows).map(printable),
    ...pods.map(({ host, people }) => printable(`${host}: ${people === 1 ? '1 person' : `${people} people`}`)),
  ])
}

function domainArgument(): Argument {
  return new Argument('<domain>', 'a host, with a port if the rule is for one port')
}

function readDomain(text: string): RuleDomainInput {
  const [, domain = text, port] = /^(.*?)(?::([0-9]{1,5}))?$/.exec(text) ?? []
  return { domain, ...(port !== undefined && { port: Number(port) }) }
}
