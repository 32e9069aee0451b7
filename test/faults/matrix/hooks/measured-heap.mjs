import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  process.on('message', () => {
    collect()
    collect()
    const { heapUsed, external, rss } = process.memoryUsage()
    process.send({ kept: heapUsed + external, rss })
  })
  process.channel?.unref()
}
