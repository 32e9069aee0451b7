import { type Command, Option } from 'commander'
import {
  addIpRule,
  addMailRule,
  changeNetworkRule,
  labelOfRule,
  listRulesForSignUps,
  type RuleInput,
  removeNetworkRule,
} from '../../../src/domain/moderation/sign-ups/network-rules.js'
import {
  IP_RULE_SEVERITIES,
  type IpRule,
  MAIL_RULE_SEVERITIES,
  type MailRule,
  type NetworkRules,
  type NetworkRuleTable,
} from '../../../src/persistence/moderation/network-rules.js'
import { presentIpRule, presentListedDomain, presentMailRule } from '../../../src/web/presenters/network-rules.js'
import { type ActorOptions, getActor, withActorOptions } from '../../actor-options.js'
import { readCount, readEnd } from '../../options.js'
import { print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

const RULES_SHOWN = 1_000

interface RuleOptions<Severity extends string> extends ActorOptions, RuleInput<Severity> {}

export function mailRuleCommands(program: Command): void {
  const rules = program.command('mail-rules').description('Rules for sign-ups by e-mail address and mail domain.')

  withActorOptions(rules.command('list'))
    .description('Lists the rules, newest first, after the domains of EMAIL_DOMAIN_BLOCKLIST.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod mail-rules list')
    .action(listMail)

  withRuleOptions(rules.command('add'), MAIL_RULE_SEVERITIES)
    .argument('<value>', 'a domain, with its subdomains, or an e-mail address')
    .description('Adds a rule, or changes the existing one. Of an e-mail address, only a keyed hash is stored.')
    .addHelpText(
      'after',
      '\nExample:\n  pod mail-rules add mail.example --severity reject --reason "Throwaway addresses"',
    )
    .action(addMail)

  addChangeCommands(rules, 'mail_rules', MAIL_RULE_SEVERITIES)
}

export function ipRuleCommands(program: Command): void {
  const rules = program.command('ip-rules').description('Rules for networks: sign-ups, or all access.')

  withActorOptions(rules.command('list'))
    .description('Lists the rules, newest first.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod ip-rules list')
    .action(listIp)

  withRuleOptions(rules.command('add'), IP_RULE_SEVERITIES)
    .argument('<network>', 'an address, or a network like 198.51.100.0/24')
    .description('Adds a rule, or changes the existing one. "no_access" does not apply to other pods.')
    .addHelpText(
      'after',
      '\nExample:\n  pod ip-rules add 198.51.100.0/24 --severity sign_up_block --until 7d --reason "Spam wave"',
    )
    .action(addIp)

  addChangeCommands(rules, 'ip_rules', IP_RULE_SEVERITIES)
}

function withRuleOptions(command: Command, severities: readonly string[]): Command {
  return withActorOptions(command)
    .addOption(new Option('--severity <severity>', 'what the rule does').choices(severities))
    .option('--comment <text>', 'a comment for moderators and admins')
    .option('--until <time>', 'a day, a time, or a duration from now like 7d', readEnd)
    .option('--json', 'print JSON')
}

function addChangeCommands(rules: Command, table: NetworkRuleTable, severities: readonly string[]): void {
  withRuleOptions(rules.command('set'), severities)
    .argument('<id>', 'the number of the rule', readCount)
    .description('Changes a rule. Options that are not given stay unchanged.')
    .addHelpText('after', `\nExample:\n  pod ${rules.name()} set 3 --until 30d --reason "Still needed"`)
    .action((id: number, options: RuleOptions<never>) => change(table, id, options))

  withActorOptions(rules.command('remove'))
    .argument('<id>', 'the number of the rule', readCount)
    .description('Removes a rule.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  pod ${rules.name()} remove 3 --reason "Over"`)
    .action((id: number, options: ActorOptions) => remove(table, id, options))
}

async function listMail(options: ActorOptions): Promise<void> {
  const { listed, items } = await withPod(async (services) => ({
    listed: services.config.emailDomainBlocklist,
    ...(await listRulesForSignUps(services, await getActor(services, options, 'moderation'), 'mail_rules', {
      limit: RULES_SHOWN,
    })),
  }))
  const rows = [
    ...listed.map((domain) => ['-', domain, 'reject', 'EMAIL_DOMAIN_BLOCKLIST', '-', '-']),
    ...items.map(rowOf),
  ]
  printRules(options, [...listed.map(presentListedDomain), ...items.map(presentMailRule)], rows)
}

async function listIp(options: ActorOptions): Promise<void> {
  const { items } = await withPod(async (services) =>
    listRulesForSignUps(services, await getActor(services, options, 'moderation'), 'ip_rules', { limit: RULES_SHOWN }),
  )
  printRules(options, items.map(presentIpRule), items.map(rowOf))
}

function rowOf(rule: MailRule | IpRule): string[] {
  const { id, severity, comment, hits, until } = rule
  return [String(id), labelOfRule(rule), severity, comment || '-', String(hits), until?.toISOString() ?? 'no end']
}

function printRules(options: ActorOptions, rules: readonly object[], rows: readonly (readonly string[])[]): void {
  const heading = ['id', 'for', 'effect', 'comment', 'hits', 'until']
  print(options, rules, [
    ...table([heading, ...rows.map((row) => [...row])]).map(printable),
    rows.length === 1 ? '1 rule' : `${rows.length} rules`,
  ])
}

async function addMail(value: string, options: RuleOptions<MailRule['severity']>): Promise<void> {
  const { severity, comment, until, reason } = options
  const kind = value.includes('@') ? ('email' as const) : ('domain' as const)
  const { changed, rule } = await withPod(async (services) =>
    addMailRule(
      services,
      await getActor(services, options, 'moderation'),
      { kind, value, severity, comment, until },
      { reason },
    ),
  )
  printRule(options, changed, rule)
}

async function addIp(cidr: string, options: RuleOptions<IpRule['severity']>): Promise<void> {
  const { severity = 'sign_up_approval', comment, until, reason } = options
  const { changed, rule } = await withPod(async (services) =>
    addIpRule(
      services,
      await getActor(services, options, 'moderation'),
      { cidr, severity, comment, until },
      { reason },
    ),
  )
  printRule(options, changed, rule)
}

async function change<Table extends NetworkRuleTable>(
  table: Table,
  id: number,
  options: RuleOptions<NetworkRules[Table]['severity']>,
): Promise<void> {
  const { severity, comment, until, reason } = options
  const { changed, rule } = await withPod(async (services) =>
    changeNetworkRule(
      services,
      await getActor(services, options, 'moderation'),
      { table, id, severity, comment, until },
      { reason },
    ),
  )
  printRule(options, changed, rule)
}

async function remove(table: NetworkRuleTable, id: number, options: ActorOptions): Promise<void> {
  const { reason } = options
  const { rule } = await withPod(async (services) =>
    removeNetworkRule(services, await getActor(services, options, 'moderation'), { table, id }, { reason }),
  )
  print(options, { changed: true, id }, [printable(`The rule for ${labelOfRule(rule)} is removed.`)])
}

function printRule(options: ActorOptions, changed: boolean, rule: MailRule | IpRule): void {
  const fields = 'network' in rule ? presentIpRule(rule) : presentMailRule(rule)
  const words = changed ? 'is in force' : 'was in force before'
  print(options, { changed, ...fields }, [
    printable(`Rule ${rule.id} (${rule.severity}) for ${labelOfRule(rule)} ${words}.`),
  ])
}
