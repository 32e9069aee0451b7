interface PagesToRead<Row, Position> {
  /** Rows of a page; a shorter one is the last. */
  readonly size: number
  /** Position before the first row. */
  readonly start: Position
  readonly positionOf: (row: Row) => Position
  read(after: Position): Promise<readonly Row[]>
}

/** Reads a list page by page: each page begins after the last row of the previous one, and no page is empty. */
export async function* pagesAfter<Row, Position>({
  size,
  start,
  positionOf,
  read,
}: PagesToRead<Row, Position>): AsyncGenerator<readonly Row[]> {
  for (let after = start; ; ) {
    const page = await read(after)
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    if (page.length < size) return
    after = positionOf(last)
  }
}
