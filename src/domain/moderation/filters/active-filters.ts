import { stateByOwner } from '../../../concurrency/state-by-owner.js'
import { listUsedFilters, readFiltersVersion } from '../../../persistence/moderation/filters.js'
import type { Services } from '../../../services/services.js'
import { type Reloading, startReloading } from '../../operations/start-reloading.js'
import { compileFilters, type FilterMatcher } from './filter-matcher.js'

interface LoadedFilters {
  readonly version: string
  readonly matcher: FilterMatcher
}

interface FilterState {
  /** Replaced by `load`, which takes it back after a failure. */
  loaded?: Promise<LoadedFilters> | undefined
  /** Set in a process that has started it. */
  reloading?: Reloading
}

/** The filters, one state for each set of open services. */
const stateOf = stateByOwner<Services['jobs'], FilterState>()

function filtersOf({ jobs }: Pick<Services, 'jobs'>): FilterState {
  return stateOf(jobs, () => ({}))
}

/** The filters of this process, loaded at the first use. Later changes arrive by `reloadFilters`. */
export async function loadActiveFilters(services: Pick<Services, 'db' | 'jobs'>): Promise<FilterMatcher> {
  const state = filtersOf(services)
  await state.reloading?.ensureFresh()
  const { matcher } = await (state.loaded ?? load(services))
  return matcher
}

/** Loads the filters again if one of them has changed. False: they are loaded for the first time, or have not changed. */
export async function reloadFilters(services: Pick<Services, 'db' | 'jobs'>): Promise<boolean> {
  const loadedFilters = await filtersOf(services).loaded
  if (loadedFilters?.version === (await readFiltersVersion(services.db))) return false
  await load(services)
  return loadedFilters !== undefined
}

/** Keeps the filters of a process up to date. */
export function startFilterLoader(services: Pick<Services, 'db' | 'jobs' | 'log'>): { close(): void } {
  const reloading = startReloading(services, 'filters', () => reloadFilters(services))
  filtersOf(services).reloading = reloading
  return reloading
}

/** Keeps the former filters in force after a failure. */
function load(services: Pick<Services, 'db' | 'jobs'>): Promise<LoadedFilters> {
  const state = filtersOf(services)
  const loading = readFilters(services.db)
  const before = state.loaded
  state.loaded = loading
  loading.catch(() => {
    if (state.loaded === loading) state.loaded = before
  })
  return loading
}

/** The version is read first: a change during the load then causes another load. */
async function readFilters(db: Services['db']): Promise<LoadedFilters> {
  const version = await readFiltersVersion(db)
  return { version, matcher: compileFilters(await listUsedFilters(db)) }
}
