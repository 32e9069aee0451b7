import { extname } from 'node:path'

/** The entry file of a process, compiled or source like this file. */
export function processFile(name: 'src/server' | 'workers/main'): URL {
  return new URL(`../${name}${extname(import.meta.url)}`, import.meta.url)
}
