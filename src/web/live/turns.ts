/** Lets so many run at a time; the others wait in the order in which they came. */
export function openTurns(atOnce: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const line: (() => void)[] = []
  let inside = 0

  return async (work) => {
    if (inside < atOnce) inside += 1
    else await new Promise<void>((enter) => line.push(enter))
    try {
      return await work()
    } finally {
      const next = line.shift()
      if (next === undefined) inside -= 1
      else next() // the place is handed on
    }
  }
}
