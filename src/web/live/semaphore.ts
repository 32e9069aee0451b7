/** Runs at most `permits` operations at a time; further ones wait in the order in which they were requested. */
export function openSemaphore(permits: number): <Result>(operation: () => Promise<Result>) => Promise<Result> {
  const queue: (() => void)[] = []
  let running = 0

  return async (operation) => {
    if (running < permits) running += 1
    else await new Promise<void>((start) => queue.push(start))
    try {
      return await operation()
    } finally {
      const startNext = queue.shift()
      if (startNext === undefined) running -= 1
      else startNext() // takes over the permit of this operation
    }
  }
}
