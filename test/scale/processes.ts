import { benchProcesses } from '../../bench/inbound/processes.js'
import { NotHere, type Outcome, type ScaleOptions } from './part.js'
import { provideRedis } from './redis-program.js'

/** The results of `npm run bench -- processes` as a table. */
export async function scaleProcesses({ rounds }: ScaleOptions): Promise<Outcome> {
  await provideRedis()
  const seen: [string, string][] = []
  const wrongs: string[] = []
  for await (const result of benchProcesses({ rounds, size: 1 })) {
    const { value, ratio = 1, spread, cpu_us: cpu, more = {} } = result
    const kinds = Object.entries(cpu).map(([kind, microseconds]) => `${kind} ${Math.round(microseconds)}`)
    const figures = [
      `${Math.round(value)} msg/s`,
      `${ratio.toFixed(2)} of the first`,
      `±${spread.toFixed(2)}`,
      `µs: ${kinds.join(' ')}`,
      `${more['connections']} connections`,
      `${more['redis_commands']?.toFixed(2)} Redis commands`,
      `${more['refused']} answered too late`,
    ]
    seen.push([result.case, figures.join(', ')])
    if (!result.ok) wrongs.push(`${result.case}: a row or a counter is not as it must be`)
  }
  if (seen.length === 0) throw new NotHere('there is no redis-server')
  return { seen, wrongs }
}
