import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files with processes of their own take longest: the others fill the cores beside the last of them. */
export class IsolatedFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const alone = sorted.filter(({ project }) => project.config.isolate)
    return [...alone, ...sorted.filter((file) => !alone.includes(file))]
  }
}
