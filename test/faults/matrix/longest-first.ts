import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Starts the longest files first: a long file that starts last would run alone at the end. */
const SLOWEST_TESTS = [
  'web',
  'redis-emptied',
  'suspects',
  'redis-dies',
  'database',
  'workers',
  'redis-frozen',
  'threads',
  'messages',
  'other-pods',
  'many-pods',
  'memory',
] as const

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const known = SLOWEST_TESTS.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return known === -1 ? SLOWEST_TESTS.length : known
    }
    return files.toSorted((one, other) => place(one) - place(other))
  }
}
