/** Text that is written piece by piece: the archive is never in memory as a whole. */
export type TextPieces = AsyncGenerator<string> | Generator<string>

/** A member of an object: its value as JSON text, or as pieces of it. */
export type Member = readonly [name: string, value: unknown]

/** A value that is written piece by piece. */
export class Streamed {
  readonly pieces: () => TextPieces

  constructor(pieces: () => TextPieces) {
    this.pieces = pieces
  }
}

/** Writes an object whose values may be streamed. */
export async function* writeObject(members: Iterable<Member>): AsyncGenerator<string> {
  let separator = '{'
  for (const [name, value] of members) {
    yield `${separator}${JSON.stringify(name)}:`
    if (value instanceof Streamed) yield* value.pieces()
    else yield JSON.stringify(value)
    separator = ','
  }
  yield separator === '{' ? '{}' : '}'
}

/** An array whose items come page by page. */
export function streamedArray(pages: () => AsyncIterable<readonly unknown[]>): Streamed {
  return new Streamed(async function* () {
    let separator = '['
    for await (const page of pages()) {
      if (page.length === 0) continue
      yield `${separator}${page.map((item) => JSON.stringify(item)).join(',')}`
      separator = ','
    }
    yield separator === '[' ? '[]' : ']'
  })
}

export function streamedObject(members: Iterable<Member>): Streamed {
  return new Streamed(() => writeObject(members))
}
