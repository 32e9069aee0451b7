import { html, type Markup, type MarkupValue } from '../pages/markup.js'

interface Column {
  readonly title: string
  /** `number`: aligned at the end. `wide`: may wrap. */
  readonly kind?: 'number' | 'wide'
}

export interface DataTable {
  /** Says what the rows are; also the name of the region that scrolls. */
  readonly caption: string
  readonly columns: readonly Column[]
  /** The first cell of a row is its heading. */
  readonly rows: readonly (readonly MarkupValue[])[]
}

/** A table that scrolls by itself on a narrow screen, and can be reached with the keyboard. */
export function dataTable({ caption, columns, rows }: DataTable): Markup {
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${columns.map(({ title, kind }) => html`<th scope="col"${classOf(kind)}>${title}</th>`)}</tr></thead>
<tbody>
${rows.map(
  (row) =>
    html`<tr>${row.map((cell, index) => {
      const kind = classOf(columns[index]?.kind)
      return index === 0 ? html`<th scope="row"${kind}>${cell}</th>` : html`<td${kind}>${cell}</td>`
    })}</tr>\n`,
)}</tbody></table></div>`
}

function classOf(kind: Column['kind']): Markup | false {
  return kind !== undefined && html` class="${kind}"`
}

/** The rows of a list with its pager, or a sentence if there are none. */
export function listCard(
  table: DataTable,
  { empty, pages }: { readonly empty: MarkupValue; readonly pages?: MarkupValue },
): Markup {
  return table.rows.length === 0 ? html`<p>${empty}</p>` : html`${dataTable(table)}\n${pages}`
}

/** Details in pairs; texts of other people must be in a `<bdi>`. */
export function detailList(details: readonly (readonly [name: string, value: MarkupValue])[]): Markup {
  return html`<dl>${details.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}

export function stateBadge(word: string, kind: 'good' | 'warn' | 'bad' | 'neutral'): Markup {
  return html`<span class="state ${kind}">${word}</span>`
}
