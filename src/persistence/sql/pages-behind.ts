interface PagesToRead<Row, Position> {
  /** Rows of a page; a shorter one is the last. */
  readonly size: number
  /** Before the first row. */
  readonly start: Position
  readonly positionOf: (row: Row) => Position
  read(behind: Position): Promise<readonly Row[]>
}

/** Reads a list page by page: each page begins behind the last row of the one before, and no page is empty. */
export async function* pagesBehind<Row, Position>({
  size,
  start,
  positionOf,
  read,
}: PagesToRead<Row, Position>): AsyncGenerator<readonly Row[]> {
  for (let behind = start; ; ) {
    const page = await read(behind)
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    if (page.length < size) return
    behind = positionOf(last)
  }
}
