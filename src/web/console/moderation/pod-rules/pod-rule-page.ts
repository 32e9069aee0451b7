import type { FastifyRequest } from 'fastify'
import { type ListedPodRule, POD_RULE_STATES, type PodRule } from '../../../../persistence/moderation/pod-rules.js'
import { html, type Markup } from '../../../pages/markup.js'
import { previewList } from '../../actions.js'
import type { ConsolePage } from '../../console-page.js'
import { actionForm, buildChoices, checkbox, reasonField, select, textField } from '../../form-parts.js'
import { formatTime } from '../../quantities.js'
import { detailList, stateBadge } from '../../tables.js'

const STATE_COLOURS = { normal: 'good', limited: 'warn', blocked: 'bad' } as const

export function ruleState({ state }: Pick<PodRule, 'state'>): Markup {
  return stateBadge(state, STATE_COLOURS[state])
}

/** The page of a rule: its subject, and the forms. */
export function rulePage(request: FastifyRequest, rule: ListedPodRule, preview: object): ConsolePage {
  const { id, domain, state, batchId } = rule
  const version = rule.updatedAt.toISOString()
  const details = detailList([
    ['State', ruleState(rule)],
    ['Subdomains', rule.subdomains ? 'too' : 'not'],
    ['Port', rule.port === null ? 'every' : String(rule.port)],
    ['Reason', html`<bdi>${rule.reason}</bdi>`],
    ['Public comment', html`<bdi>${rule.publicComment === '' ? 'none' : rule.publicComment}</bdi>`],
    ['Ends', rule.until === null ? 'never' : formatTime(rule.until)],
    [
      'Made',
      html`${formatTime(rule.createdAt)} by <bdi>${rule.createdBy}</bdi>${batchId !== null && html`, <a href="/admin/rules/import/${batchId}">import ${batchId}</a>`}`,
    ],
  ])
  const fields = html`${select('State', 'state', buildChoices(POD_RULE_STATES), state)}${checkbox('With subdomains', 'subdomains', { isTicked: rule.subdomains })}${settingFields(rule)}${reasonField()}<button>Change the rule</button>`
  return {
    title: `${domain}: ${state}`,
    content: html`<section class="card">${details}</section>
<section class="card"><h2>What it concerns</h2>${previewList(preview)}</section>
<section class="card choices"><div><h2>Change</h2>${actionForm(request, `/admin/rules/${id}/change`, fields, { version })}</div>
<div><h2>Delete</h2><p>Deliveries of the last 14 days to pods that are no longer blocked are sent. Messages that were dropped stay lost.</p>${actionForm(request, `/admin/rules/${id}/delete`, html`${reasonField()}<button class="danger">Delete the rule</button>`, { version })}</div></section>`,
  }
}

interface GivenRule {
  readonly domain?: string
  readonly subdomains?: boolean
  readonly port?: number | null
  readonly state?: PodRule['state'] | undefined
}

/** The first button only counts. */
export function newRuleForm(request: FastifyRequest, given: GivenRule = {}): Markup {
  const { domain = '', subdomains = true, port = null, state = 'limited' } = given
  const content = html`${textField('Domain', 'domain', domain, { required: true })}${checkbox('With subdomains', 'subdomains', { isTicked: subdomains })}
${textField('Port (optional)', 'port', port === null ? '' : String(port), { type: 'number' })}${select('State', 'state', buildChoices(POD_RULE_STATES), state)}${settingFields()}
<label>Reason (to set it)<input name="reason" maxlength="2000" autocomplete="off"></label>
<div class="buttons"><button class="quiet" formaction="/admin/rules/preview">Preview</button><button>Set the rule</button></div>`
  return actionForm(request, '/admin/rules', content)
}

function settingFields(rule?: PodRule): Markup {
  const until = rule?.until?.toISOString().slice(0, 10) ?? ''
  return html`${textField('Public comment (optional)', 'public_comment', rule?.publicComment)}${checkbox('Obfuscate the domain for others', 'obfuscate', { isTicked: rule?.obfuscate ?? false })}${textField('Ends on (UTC, optional)', 'until', until, { type: 'date' })}`
}
