import { listUsedFilters, readFiltersVersion } from '../../../persistence/moderation/filters.js'
import type { Pod } from '../../../pod/pod.js'
import { type Reloading, startReloading } from '../../operations/start-reloading.js'
import { compileFilters, type FilterMatcher } from './filter-matcher.js'

interface LoadedFilters {
  readonly version: string
  readonly matcher: FilterMatcher
}

/** One entry for each open pod of this process. `load` replaces it, and takes it back after a failure. */
const loaded = new WeakMap<Pod['jobs'], Promise<LoadedFilters>>()

/** Of the processes that have started it. */
const reloadings = new WeakMap<Pod['jobs'], Reloading>()

/** The filters of this process, loaded at the first use. Later changes arrive by `reloadFilters`. */
export async function activeFilters(pod: Pick<Pod, 'db' | 'jobs'>): Promise<FilterMatcher> {
  await reloadings.get(pod.jobs)?.ensureFresh()
  const { matcher } = await (loaded.get(pod.jobs) ?? load(pod))
  return matcher
}

/** Loads the filters again if one of them has changed. */
export async function reloadFilters(pod: Pick<Pod, 'db' | 'jobs'>): Promise<void> {
  const loadedFilters = await loaded.get(pod.jobs)
  if (loadedFilters === undefined || loadedFilters.version !== (await readFiltersVersion(pod.db))) await load(pod)
}

/** Keeps the filters of a process up to date. */
export function startFilterLoader(pod: Pick<Pod, 'db' | 'jobs' | 'log'>): { close(): void } {
  const reloading = startReloading(pod, 'filters', () => reloadFilters(pod))
  reloadings.set(pod.jobs, reloading)
  return reloading
}

function load({ db, jobs }: Pick<Pod, 'db' | 'jobs'>): Promise<LoadedFilters> {
  const loading = readFilters(db)
  const before = loaded.get(jobs)
  loaded.set(jobs, loading)
  loading.catch(() => {
    if (loaded.get(jobs) === loading) restore(jobs, before)
  })
  return loading
}

/** After a failure the filters of before stay in force. */
function restore(jobs: Pod['jobs'], before: Promise<LoadedFilters> | undefined): void {
  if (before === undefined) loaded.delete(jobs)
  else loaded.set(jobs, before)
}

/** The version is read first: a change in between is then loaded again. */
async function readFilters(db: Pod['db']): Promise<LoadedFilters> {
  const version = await readFiltersVersion(db)
  return { version, matcher: compileFilters(await listUsedFilters(db)) }
}
