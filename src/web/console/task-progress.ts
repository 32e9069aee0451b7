import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import { html, type Markup } from '../pages/markup.js'
import { formatCount, formatTime } from './quantities.js'
import { dataTable } from './tables.js'

/** The progress of work in the background, also of failed work; nothing without such work. */
export function operationProgress(
  operations: readonly BackgroundTask[],
  wordsOf: (task: BackgroundTask) => Markup | string,
): Markup | '' {
  if (operations.length === 0) return ''
  const table = dataTable({
    caption: 'In progress',
    columns: [
      { title: 'Work' },
      { title: 'Done', kind: 'number' },
      { title: 'Of', kind: 'number' },
      { title: 'Started' },
      { title: 'Last progress' },
    ],
    rows: operations.map((task) => [
      wordsOf(task),
      formatCount(task.done + task.skipped),
      formatCount(task.total),
      formatTime(task.createdAt),
      progressText(task),
    ]),
  })
  const hasFailed = operations.some(({ state }) => state === 'failed')
  return html`${hasFailed && workFailed()}<section class="card">${table}</section>\n`
}

function progressText({ state, changedAt }: BackgroundTask): Markup | string {
  if (state === 'queued') return 'waits for a worker'
  return state === 'failed' ? html`failed, ${formatTime(changedAt)}` : formatTime(changedAt)
}

/** Says that work in the background was given up, and how it continues. */
function workFailed(): Markup {
  return html`<p class="alert" role="alert">The work has failed. Replay its job <code>run-operation</code> in the <a href="/admin/dead-letters">dead letters</a>.</p>`
}
