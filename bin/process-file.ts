import { extname } from 'node:path'

/** Where the entry of a process is, compiled or as source, like this file. */
export function processFile(name: 'src/server' | 'workers/main'): URL {
  return new URL(`../${name}${extname(import.meta.url)}`, import.meta.url)
}
