const NEWLINE = 10
/** A chunk per row would cost more than the row. */
const CHUNK_BYTES = 128 * 1024

/** Joins small chunks. */
async function* joinChunks(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    bytes += chunk.length
    if (bytes < CHUNK_BYTES) continue
    yield Buffer.concat(parts)
    parts = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(parts)
}

/** Splits rows, each of which ends with a line feed, into pieces of about `limit` bytes. Each piece has to be read to its end. */
export async function* splitRows(chunks: AsyncIterable<Buffer>, limit: number): AsyncGenerator<AsyncIterable<Buffer>> {
  const source = joinChunks(chunks)
  let next: Buffer | undefined = (await source.next()).value ?? undefined

  async function* piece(): AsyncGenerator<Buffer> {
    let bytes = 0
    while (next !== undefined) {
      const chunk: Buffer = next
      const end = bytes + chunk.length < limit ? -1 : chunk.indexOf(NEWLINE, Math.max(0, limit - bytes - 1))
      if (end === -1 || end === chunk.length - 1) {
        next = (await source.next()).value ?? undefined
        yield chunk
        if (end !== -1) return
        bytes += chunk.length
      } else {
        next = chunk.subarray(end + 1)
        yield chunk.subarray(0, end + 1)
        return
      }
    }
  }

  while (next !== undefined) yield piece()
}

export function countRows(chunk: Uint8Array): number {
  let rows = 0
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) rows += 1
  return rows
}

/** The lines of a text, without their line feeds. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
