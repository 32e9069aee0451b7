import type { WriteStream } from 'node:tty'

/** A progress bar below the printed results: the running bench, the number of benches and the elapsed time. Only on a terminal. */
export interface Progress {
  show(bench: string): void
  /** Removes the bar before other output. */
  clear(): void
  end(): void
}

const WIDTH = 30
const INTERVAL_MS = 1_000
const CLEAR_LINE = '\r\u001b[2K'

const silent: Progress = { show() {}, clear() {}, end() {} }

export function openProgress(names: readonly string[], terminal: WriteStream): Progress {
  if (!terminal.isTTY) return silent
  const start = performance.now()
  let running: string | undefined

  function draw(): void {
    if (running === undefined) return
    const done = names.indexOf(running)
    const filled = Math.round((done / names.length) * WIDTH)
    const bar = '█'.repeat(filled) + '░'.repeat(WIDTH - filled)
    const seconds = Math.round((performance.now() - start) / 1_000)
    terminal.write(`${CLEAR_LINE}${bar} ${running}, ${done + 1} of ${names.length}, ${seconds} s`)
  }

  const timer = setInterval(draw, INTERVAL_MS)
  return {
    show(bench) {
      running = bench
      draw()
    },
    clear: () => void terminal.write(CLEAR_LINE),
    end() {
      clearInterval(timer)
      terminal.write(CLEAR_LINE)
    },
  }
}
