import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Starts the files that have a process of their own first, because they take longest. */
export class IsolatedFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isolated = sorted.filter(({ project }) => project.config.isolate)
    return [...isolated, ...sorted.filter((file) => !isolated.includes(file))]
  }
}
