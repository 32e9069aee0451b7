import type { BackgroundOperation } from '../../domain/operations/long-operations.js'
import { html, type Markup } from '../pages/markup.js'
import { formatCount, formatTime } from './quantities.js'
import { dataTable } from './tables.js'

/** The progress of work in the background; nothing without such work. */
export function operationProgress(
  operations: readonly BackgroundOperation[],
  wordsOf: (operation: BackgroundOperation) => Markup | string,
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
    rows: operations.map((operation) => [
      wordsOf(operation),
      formatCount(operation.done + operation.skipped),
      formatCount(operation.total),
      formatTime(operation.createdAt),
      operation.state === 'queued' ? 'waits for a worker' : formatTime(operation.changedAt),
    ]),
  })
  return html`<section class="card">${table}</section>\n`
}
