import type { ChildProcess } from 'node:child_process'
import { forkFile, said } from '../machine/child-process.js'
import { processorTimesOf } from '../machine/processor-time.js'
import type { Load, LoadResult, Question } from './http-load.js'

const CONNECTIONS = 16
const MILLISECONDS = 300

export function openHttpLoader(): ChildProcess {
  return forkFile('load/http-load')
}

export async function load(loader: ChildProcess, port: number, questions: readonly Question[]): Promise<LoadResult> {
  loader.send({
    port,
    questions,
    host: 'pod.example',
    connections: CONNECTIONS,
    milliseconds: MILLISECONDS,
  } satisfies Load)
  return said<LoadResult>(loader)
}

/** What a load cost, too. */
export interface Timed extends LoadResult {
  /** Microseconds of processor time for one request, by process. */
  readonly cpu: { readonly web: number; readonly postgres: number }
}

export async function timed(
  pids: Readonly<Record<'web' | 'postgres', number>>,
  run: () => Promise<LoadResult>,
): Promise<Timed> {
  const before = processorTimesOf(pids)
  const result = await run()
  const after = processorTimesOf(pids)
  const spent = (name: 'web' | 'postgres') => ((after[name] ?? 0) - (before[name] ?? 0)) / result.requests
  return { ...result, cpu: { web: spent('web'), postgres: spent('postgres') } }
}
