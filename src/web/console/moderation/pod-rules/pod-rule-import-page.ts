import type { FastifyRequest } from 'fastify'
import type { ImportPart } from '../../../../domain/moderation/pods/pod-rule-imports.js'
import { nameOfRule } from '../../../../domain/moderation/pods/rule-domain.js'
import { inEnglish } from '../../../../languages/locales.js'
import {
  IMPORT_VERDICTS,
  type ImportRow,
  type StoredImportRow,
} from '../../../../persistence/moderation/pod-rule-imports.js'
import { neighbourLinks } from '../../../pages/list-navigation.js'
import { html, type Markup } from '../../../pages/markup.js'
import type { ConsolePage } from '../../console-page.js'
import { actionForm, buildChoices, checkbox, filterForm, reasonField, select } from '../../form-parts.js'
import { formatCount, formatTime } from '../../quantities.js'
import { detailList, listCard } from '../../tables.js'

export const IMPORT_MODES = ['keep', 'stricter', 'replace'] as const
export const ROWS_SHOWN = 200

const MODES = [
  ['keep', 'keep it'],
  ['stricter', 'take the stricter one'],
  ['replace', 'replace it'],
] as const

export function importForm(request: FastifyRequest): Markup {
  const content = html`<label>List (CSV of Mastodon, or one domain a line; at most 20 000 rows and 5 MiB)<input type="file" name="file" required accept=".csv,.txt,text/csv,text/plain"></label>
${select('A domain that has a rule', 'mode', MODES, 'keep')}<button>Plan the import</button>`
  return actionForm(request, '/admin/rules/import', content, { encoding: 'multipart/form-data' })
}

/** The plan of an import with a checkbox for each row, or its result. */
export function planPage(
  request: FastifyRequest,
  { plan, counts, rows }: ImportPart,
  verdict: ImportRow['verdict'] | undefined,
): ConsolePage {
  const { id, state, mode } = plan
  const path = `/admin/rules/import/${id}`
  const shownRows = rows.slice(0, ROWS_SHOWN)
  const last = shownRows.at(-1)
  const chosenRows = counts.reduce((sum, group) => sum + (group.chosen ? group.rows : 0), 0)
  const isPlanned = state === 'planned'
  const list = html`${listCard(rowTable(shownRows, isPlanned), { empty: 'No rows match.' })}`
  const details = detailList([
    ['State', state],
    ['A domain that has a rule', MODES.find(([name]) => name === mode)?.[1] ?? mode],
    ['Made', html`${formatTime(plan.createdAt)} by <bdi>${plan.createdBy}</bdi>`],
    ['Chosen rows', formatCount(chosenRows)],
  ])
  return {
    title: `Import ${id}: ${state}`,
    content: html`<section class="card">${details}${countTable(counts)}</section>
<section class="card">${filterForm(path, select('Rows', 'verdict', buildChoices(IMPORT_VERDICTS, 'all'), verdict))}
${isPlanned ? applyForm(request, path, chosenRows, list) : list}
${neighbourLinks(inEnglish, path, { verdict }, { next: rows.length > ROWS_SHOWN && last !== undefined && { after: String(last.id) } })}</section>
${state === 'applied' && html`<section class="card"><h2>Undo</h2><p>Rules that were changed or deleted since the import are kept.</p>${actionForm(request, `${path}/undo`, html`${reasonField()}<button class="danger">Undo the import…</button>`)}</section>`}`,
  }
}

function applyForm(request: FastifyRequest, path: string, chosen: number, list: Markup): Markup {
  const choices = [
    ['plan', `the ${formatCount(chosen)} rows that the plan has chosen`],
    ['ticked', 'only the rows that are ticked on this page'],
  ] as const
  const content = html`${list}${select('Apply', 'rows', choices, 'plan')}${reasonField()}<button class="quiet">Apply…</button>`
  return actionForm(request, `${path}/apply`, content)
}

function rowTable(rows: readonly StoredImportRow[], isPlanned: boolean) {
  return {
    caption: 'Rows of the list',
    columns: [
      { title: 'Domain' },
      { title: 'Severity' },
      { title: 'Verdict' },
      { title: 'Relations of local users', kind: 'number' as const },
      { title: isPlanned ? 'Apply' : 'Result' },
    ],
    rows: rows.map(({ id, severity, verdict, fault, contacts, chosen, step, ...rule }) => [
      html`<bdi>${nameOfRule(rule)}</bdi>`,
      html`<bdi>${severity}</bdi>`,
      `${verdict}${fault === null ? '' : `: ${fault.replaceAll('_', ' ')}`}`,
      formatCount(contacts),
      !isPlanned
        ? step
        : verdict === 'skip'
          ? '–'
          : checkbox(html`<bdi>${nameOfRule(rule)}</bdi>`, 'ids[]', { value: String(id), isTicked: chosen }),
    ]),
  }
}

function countTable(counts: ImportPart['counts']): Markup {
  const table = {
    caption: 'Rows by verdict and step',
    columns: [{ title: 'Verdict' }, { title: 'Step' }, { title: 'Chosen' }, { title: 'Rows', kind: 'number' as const }],
    rows: counts.map(({ verdict, step, chosen, rows }) => [verdict, step, chosen ? 'yes' : 'no', formatCount(rows)]),
  }
  return listCard(table, { empty: 'The list has no rows.' })
}
