import type { ChildProcess } from 'node:child_process'
import { forkFile, said } from '../machine/child-process.js'
import type { PostLoad, PostLoadResult } from './post-load.js'

export function openLoader(): ChildProcess {
  return forkFile('load/post-load')
}

export async function load(loader: ChildProcess, task: PostLoad): Promise<PostLoadResult> {
  loader.send(task)
  return said<PostLoadResult>(loader)
}
