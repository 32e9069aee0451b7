import { setTimeout as pause } from 'node:timers/promises'

/** The state of the pod, as lines of text. */
export interface ScreenContent {
  /** The lines of the screen, for a terminal. */
  readonly lines: readonly string[]
  /** One line, for a file or a pipe. */
  readonly summary: string
}

interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const TO_START = '\u{1b}[H'
const CLEAR_LINE = '\u{1b}[K'
const CLEAR_BELOW = '\u{1b}[J'

/** Reads and shows the state until the signal aborts. A terminal is redrawn in place; elsewhere each state is a line. */
export async function watchScreen(
  screen: Screen,
  { seconds, signal }: { readonly seconds: number; readonly signal: AbortSignal },
  read: () => Promise<ScreenContent>,
): Promise<void> {
  if (screen.isTTY) screen.write(`${TO_START}${CLEAR_BELOW}`)
  while (!signal.aborted) {
    const { lines, summary } = await read()
    const drawn = lines.map((line) => `${line}${CLEAR_LINE}\n`).join('')
    screen.write(screen.isTTY ? `${TO_START}${drawn}${CLEAR_BELOW}` : `${summary}\n`)
    await pause(seconds * 1_000, undefined, { signal }).catch(() => {})
  }
}
