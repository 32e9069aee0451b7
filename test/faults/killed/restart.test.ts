import { mkdtemp, rm } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from '../../deploy/find-program.js'
import { askProxy, type ProxyAnswer, type RunningProxy, startNginx } from '../../deploy/running-proxies.js'
import { type Follower, follow } from '../../support/http/event-stream.js'
import { freePort } from '../../support/http/free-port.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { type PodProcess, startPodProcess } from '../../support/processes/pod-process.js'

const proxies = [{ name: 'nginx', program: await findProgram('nginx'), start: startNginx }]
const WRITERS = 3
const READERS = 3

describe.each(proxies.filter(({ program }) => program !== undefined))(
  'two web processes behind $name',
  ({ program = '', start }) => {
    let folder: string
    let api: SampleApiPod
    let settings: NodeJS.ProcessEnv
    let proxy: RunningProxy
    const ports: number[] = []
    const processes: PodProcess[] = []
    const cleanups: (() => unknown)[] = []

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'restart-'))
      cleanups.push(() => rm(folder, { recursive: true, force: true }))
      api = await startSampleApiPod()
      cleanups.push(() => api.close())
      const { url, databaseUrl, secretKey } = api.pod.config
      settings = {
        POD_URL: url,
        DATABASE_URL: databaseUrl,
        SECRET_KEY: secretKey,
        LOG_LEVEL: 'silent',
        // Just above the time for which nginx skips a process after a failure.
        SHUTDOWN_DELAY: '3',
        WRITE_LIMIT: '0',
      }
      cleanups.push(() => Promise.all(processes.map((each) => each.kill())))
      for (const index of [0, 1]) {
        ports.push(await freePort())
        processes.push(await startWeb(index))
      }
      processes.push(await startPodProcess('worker', { ...settings, WORKER_QUEUES: 'notify' }, folder))
      proxy = await start(program, folder, ...ports)
      cleanups.push(() => proxy.close())
      for (;;) {
        const response = await askProxy(proxy, '/health/live').catch(() => undefined)
        if (response?.status === 200) break
      }
    }, 240_000)
    afterAll(async () => {
      for (const step of cleanups.reverse()) await step()
    })

    const startWeb = (index: number) => startPodProcess('web', { ...settings, PORT: `${ports[index]}` }, folder)

    it('are restarted one by one: no request fails, no write runs twice, and a stream misses no event', async () => {
      const headers = { authorization: `Bearer ${api.bob.token}`, 'content-type': 'application/json' }
      const base = `https://127.0.0.1:${proxy.https}`
      const follower: Follower = follow(() => ({
        base,
        host: 'pod.example',
        token: api.alice.token,
        query: 'types=post',
      }))
      cleanups.push(() => follower.close())
      await follower.until(() => follower.placed)
      const written: string[] = []
      const statuses = new Map<string, number>()
      let requests = 0
      let isOver = false
      const count = (key: string) => statuses.set(key, (statuses.get(key) ?? 0) + 1)

      /** Repeats a request after 503 with Retry-After: an overloaded process has not run it. */
      async function requestWithRetries(path: string, options: RequestOptions, body?: Buffer): Promise<ProxyAnswer> {
        for (;;) {
          const response = await askProxy(proxy, path, options, body)
          if (response.status !== 503 || response.headers['retry-after'] === undefined) return response
        }
      }
      async function write(): Promise<void> {
        while (!isOver) {
          requests += 1
          const body = Buffer.from(JSON.stringify({ body: `During a restart, ${requests}`, public: true }))
          const response = await requestWithRetries('/api/v1/posts', { method: 'POST', headers }, body)
          count(`POST ${response.status}`)
          if (response.status === 200) written.push(JSON.parse(response.body).guid)
        }
      }
      async function read(): Promise<void> {
        while (!isOver) count(`GET ${(await requestWithRetries('/api/v1/streams/main', { headers })).status}`)
      }

      const clients = [...Array.from({ length: WRITERS }, write), ...Array.from({ length: READERS }, read)]
      for (const index of [0, 1]) {
        processes[index]?.signal('SIGTERM')
        expect(await processes[index]?.ended).toEqual({ code: 0, signal: null })
        processes[index] = await startWeb(index)
      }
      isOver = true
      await Promise.all(clients)

      expect([...statuses.keys()].toSorted()).toEqual(['GET 200', 'POST 200'])
      const texts = await api.pod.db('posts').whereLike('text', 'During a restart, %').pluck<string[]>('text')
      expect(texts.length).toBe(new Set(texts).size)
      expect(texts.length).toBe(written.length)
      // Events of the sample data may still arrive.
      const isWritten = new Set(written)
      const listReceived = () => follower.events.map(({ data }) => data.guid).filter((guid) => isWritten.has(guid))
      await follower.until(() => listReceived().length >= written.length)
      expect(listReceived().toSorted()).toEqual(written.toSorted())
      expect(follower.connections).toBeGreaterThan(1)
    }, 240_000)
  },
)
