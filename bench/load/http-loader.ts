import type { ChildProcess } from 'node:child_process'
import { forkFile, nextMessage } from '../machine/child-process.js'
import { processorTimesOf } from '../machine/processor-time.js'
import type { HttpLoad, LoadRequest, LoadResult } from './http-load.js'

const CONNECTIONS = 16
const MILLISECONDS = 300

export function openHttpLoader(): ChildProcess {
  return forkFile('load/http-load')
}

export async function load(loader: ChildProcess, port: number, requests: readonly LoadRequest[]): Promise<LoadResult> {
  loader.send({
    port,
    requests,
    host: 'pod.example',
    connections: CONNECTIONS,
    milliseconds: MILLISECONDS,
  } satisfies HttpLoad)
  return nextMessage<LoadResult>(loader)
}

/** The result of a load with its processor time. */
export interface MeasuredLoad extends LoadResult {
  /** Microseconds of processor time per request, by process. */
  readonly cpu: { readonly web: number; readonly postgres: number }
}

export async function measureLoad(
  pids: Readonly<Record<'web' | 'postgres', number>>,
  run: () => Promise<LoadResult>,
): Promise<MeasuredLoad> {
  const before = processorTimesOf(pids)
  const result = await run()
  const after = processorTimesOf(pids)
  const spent = (name: 'web' | 'postgres') => ((after[name] ?? 0) - (before[name] ?? 0)) / result.responses
  return { ...result, cpu: { web: spent('web'), postgres: spent('postgres') } }
}
