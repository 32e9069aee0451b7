import { benchProcesses } from '../../bench/inbound/processes.js'
import { NotAvailable, type Outcome, type ScaleOptions } from './part.js'
import { ensureRedis } from './redis-program.js'

/** The results of `npm run bench -- processes` as a table. */
export async function scaleProcesses({ rounds }: ScaleOptions): Promise<Outcome> {
  await ensureRedis()
  const results: [string, string][] = []
  const violations: string[] = []
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
      `${more['refused']} refused`,
    ]
    results.push([result.case, figures.join(', ')])
    if (!result.ok) violations.push(`${result.case}: a row or a counter is wrong`)
  }
  if (results.length === 0) throw new NotAvailable('redis-server is not installed')
  return { results, violations }
}
