import type { Progress, ReportProgress } from '../src/persistence/operations/progress.js'

/** Milliseconds between two lines. */
const ON_TERMINAL = 200
const ELSEWHERE = 10_000

export interface ShownProgress {
  readonly report: ReportProgress
  /** Removes the line of a terminal. */
  end(): void
}

/**
 * Shows progress on stderr: one changing line on a terminal, a line every ten seconds elsewhere. A new step is shown at once on a
 * terminal, because a step like an index of a large table reports nothing until it ends.
 */
export function showProgress(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr): ShownProgress {
  const every = stream.isTTY ? ON_TERMINAL : ELSEWHERE
  let shownAt = performance.now()
  let step = ''
  let stepBegan = 0
  let isShown = false
  return {
    report(progress) {
      const now = performance.now()
      const isNewStep = progress.step !== step
      if (isNewStep) [step, stepBegan] = [progress.step, now]
      if (now - shownAt < every && !(isNewStep && stream.isTTY)) return
      shownAt = now
      const line = describeProgress(progress, (now - stepBegan) / 1_000)
      stream.write(stream.isTTY ? `\r\x1b[K${line}` : `${line}\n`)
      isShown = true
    },
    end() {
      if (isShown && stream.isTTY) stream.write('\r\x1b[K')
    },
  }
}

/** Share done, rate and time left, after this number of seconds. */
function describeProgress({ step, done, total, note }: Progress, seconds: number): string {
  const unit = step === 'tables' || step === 'files' ? describeBytes : String
  const rate = seconds > 0 ? done / seconds : 0
  const parts: string[] = []
  if (total !== undefined && total > 0) parts.push(`${Math.floor((done / total) * 100)} % of ${unit(total)}`)
  else if (done > 0) parts.push(unit(done))
  if (rate > 0) parts.push(`${unit(rate < 1 ? Number(rate.toPrecision(1)) : Math.round(rate))} a second`)
  if (total !== undefined && total > done && rate > 0) parts.push(`${describeSeconds((total - done) / rate)} left`)
  if (note !== undefined) parts.push(note)
  return parts.length === 0 ? step : `${step}: ${parts.join(', ')}`
}

export function describeBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

function describeSeconds(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  if (seconds < 3_600) return `${Math.ceil(seconds / 60)} min`
  return `${(seconds / 3_600).toFixed(1)} h`
}
