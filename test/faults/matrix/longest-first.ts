import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** One that takes long and begins last has the whole machine wait for it. */
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
