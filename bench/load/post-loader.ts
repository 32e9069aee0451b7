import type { ChildProcess } from 'node:child_process'
import { forkFile, nextMessage } from '../machine/child-process.js'
import type { PostLoad, PostLoadResult } from './post-load.js'

export function startPostLoader(): ChildProcess {
  return forkFile('load/post-load')
}

export async function runPostLoad(loader: ChildProcess, task: PostLoad): Promise<PostLoadResult> {
  loader.send(task)
  return nextMessage<PostLoadResult>(loader)
}
