import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Starts the longest files first: a long file that starts last would run alone at the end. */
const LONGEST = [
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
      const known = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return known === -1 ? LONGEST.length : known
    }
    return files.toSorted((one, other) => place(one) - place(other))
  }
}
