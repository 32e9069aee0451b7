import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fastify } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exampleFile, settingsPage } from '../scripts/settings-pages.js'
import { namesOfSettings, readConfig, SettingsError } from '../src/config/config.js'
import { QUEUES } from '../src/jobs/queues/queue-names.js'

function faultsOf(environment: NodeJS.ProcessEnv): readonly string[] {
  try {
    readConfig(environment)
  } catch (error) {
    if (error instanceof SettingsError) return error.faults
    throw error
  }
  return []
}

describe('without any setting', () => {
  const config = readConfig({})

  it('is a pod on this machine with the embedded database and its queue', () => {
    expect(config).toMatchObject({
      url: 'http://localhost:3000',
      host: 'localhost:3000',
      listen: { host: '127.0.0.1', port: 3000 },
      databaseUrl: undefined,
      redisUrl: undefined,
      workerQueues: QUEUES,
      adminListen: 'default',
      clientApiDialect: 'standard',
    })
  })
})

describe('POD_URL', () => {
  it('follows the port where it is not set, so that two pods on one machine are two', () => {
    expect(readConfig({ PORT: '3001' })).toMatchObject({ url: 'http://localhost:3001', host: 'localhost:3001' })
  })

  it.each([
    ['https://pod.example', 'https://pod.example', 'pod.example'],
    ['https://pod.example/', 'https://pod.example', 'pod.example'],
    ['https://www.pod.example', 'https://www.pod.example', 'pod.example'],
    ['https://Pod.Example:8443', 'https://pod.example:8443', 'pod.example:8443'],
    ['https://pod.example:443', 'https://pod.example', 'pod.example'],
  ])('%s names the pod', (given, url, host) => {
    expect(readConfig({ POD_URL: given })).toMatchObject({ url, host })
  })

  it.each([
    'pod.example',
    'ftp://pod.example',
    'https://pod.example/diaspora',
    'https://user@pod.example',
    'https://pod.example?x=1',
  ])('%s is refused with a sentence', (given) => {
    expect(faultsOf({ POD_URL: given })).toEqual([expect.stringMatching(/^POD_URL must be .+\.$/)])
  })
})

describe('what is wrong', () => {
  it('is said all at once, one sentence for each setting', () => {
    const faults = faultsOf({
      POD_URL: 'pod.example',
      PORT: '70000',
      DATABASE_URL: 'mysql://here',
      DATABASE_READ_URL: 'mysql://there',
      DATABASE_POOL: '1',
      REDIS_URL: 'localhost:6379',
      REDIS_REPLICAS: 'two',
      WORKER_QUEUES: 'inbound,inbox',
      WORKER_CONCURRENCY: 'fetch=many',
      CRYPTO_THREADS: '0',
      SECRET_KEY: 'short',
      LOG_LEVEL: 'loud',
      LOG_FORMAT: 'xml',
      CLIENT_API_DIALECT: 'Diaspora',
      ADMIN_LISTEN: 'localhost:99999',
      TRUST_PROXY: 'everybody',
    })

    expect(faults.map((fault) => fault.split(' ')[0]).sort()).toEqual([
      'ADMIN_LISTEN',
      'CLIENT_API_DIALECT',
      'CRYPTO_THREADS',
      'DATABASE_POOL',
      'DATABASE_READ_URL',
      'DATABASE_URL',
      'LOG_FORMAT',
      'LOG_LEVEL',
      'POD_URL',
      'PORT',
      'REDIS_REPLICAS',
      'REDIS_URL',
      'SECRET_KEY',
      'TRUST_PROXY',
      'WORKER_CONCURRENCY',
      'WORKER_QUEUES',
    ])
    expect(faults.every((fault) => fault.endsWith('.'))).toBe(true)
  })

  it('never repeats a secret', () => {
    const secrets = { SECRET_KEY: 'hunter2', DATABASE_URL: 'mysql://pod:hunter2@db', REDIS_URL: 'http://:hunter2@db' }
    expect(faultsOf(secrets).join()).not.toContain('hunter2')
  })
})

describe('an empty text', () => {
  it('is a setting that is not set', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: '', REDIS_URL: '' })).toEqual(readConfig({}))
  })

  it('turns the admin server off', () => {
    expect(readConfig({ ADMIN_LISTEN: '' }).adminListen).toBe('off')
    expect(readConfig({ ADMIN_LISTEN: '[::1]:9000' }).adminListen).toEqual({ host: '::1', port: 9000 })
    for (const text of ['1:2:3', '::1:9000', 'a b:1', ':9000']) {
      expect(() => readConfig({ ADMIN_LISTEN: text })).toThrow('ADMIN_LISTEN must be')
    }
  })
})

describe('a setting in a file', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'settings-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function fileWith(text: string): Promise<string> {
    const path = join(folder, randomUUID())
    await writeFile(path, text)
    return path
  }

  it('is read without the line end', async () => {
    const config = readConfig({
      SECRET_KEY_FILE: await fileWith(`${'k'.repeat(40)}\n`),
      DATABASE_URL_FILE: await fileWith('postgres://pod@db/pod\n'),
      DATABASE_READ_URL_FILE: await fileWith('postgres://pod@replica/pod'),
      REDIS_URL_FILE: await fileWith('redis://queue:6379\n'),
    })

    expect(config).toMatchObject({
      secretKey: 'k'.repeat(40),
      databaseUrl: 'postgres://pod@db/pod',
      databaseReadUrl: 'postgres://pod@replica/pod',
      redisUrl: 'redis://queue:6379',
    })
  })

  it('is a fault if the file is missing, empty, or the setting is given twice', async () => {
    const empty = await fileWith('\n')

    expect(faultsOf({ SECRET_KEY_FILE: join(folder, 'missing') }).join()).toMatch(
      /SECRET_KEY_FILE names, cannot be read/,
    )
    expect(faultsOf({ SECRET_KEY_FILE: empty }).join()).toMatch(/SECRET_KEY_FILE names, is empty/)
    expect(faultsOf({ SECRET_KEY: 'k'.repeat(40), SECRET_KEY_FILE: empty })).toEqual([
      'SECRET_KEY and SECRET_KEY_FILE are both set: remove one of them.',
    ])
  })

  it('is checked like one in the environment, without its value in the message', async () => {
    const faults = faultsOf({ DATABASE_URL_FILE: await fileWith('mysql://pod:hunter2@db') }).join()

    expect(faults).toMatch(/^DATABASE_URL must be an address/)
    expect(faults).not.toContain('hunter2')
  })
})

describe('ADMIN_LISTEN', () => {
  it.each([
    ['9000', { host: '127.0.0.1', port: 9000 }],
    ['0.0.0.0:9000', { host: '0.0.0.0', port: 9000 }],
    ['[::1]:9000', { host: '::1', port: 9000 }],
    ['/run/pod/admin.sock', { path: '/run/pod/admin.sock' }],
  ])('%s is understood', (given, listen) => {
    expect(readConfig({ ADMIN_LISTEN: given }).adminListen).toEqual(listen)
  })
})

describe('TRUST_PROXY', () => {
  it.each([
    ['true', true],
    ['false', false],
    ['none', false],
    ['loopback, 10.0.0.0/8', 'loopback, 10.0.0.0/8'],
    ['10.0.0.0/255.0.0.0', '10.0.0.0/255.0.0.0'],
    ['fd00::/8,192.0.2.1', 'fd00::/8,192.0.2.1'],
    ['::ffff:10.0.0.0/104', '::ffff:10.0.0.0/104'],
  ])('%s is understood', (given, trusted) => {
    expect(readConfig({ TRUST_PROXY: given }).trustProxy).toBe(trusted)
    expect(() => fastify({ trustProxy: trusted })).not.toThrow()
  })

  it.each([
    'everybody',
    '10.0.0.0/33',
    '10.0.0.0/255.0.255.0',
    '10.0.0.0/0',
    'fd00::/129',
    'loopback/8',
    '10.0.0.1/8/8',
    'loopback,,',
  ])('%s is refused, as the server would', (given) => {
    expect(faultsOf({ TRUST_PROXY: given })).toEqual([expect.stringMatching(/^TRUST_PROXY must be .+\.$/)])
    expect(() => fastify({ trustProxy: given })).toThrow('invalid')
  })
})

describe('REDIS_REPLICAS', () => {
  it.each([
    ['redis://db', 0],
    ['redis+cluster://a,b,c', 0],
    ['redis+sentinel://a,b,c/main', 1],
  ])('defaults for %s to %i', (address, replicas) => {
    expect(readConfig({ REDIS_URL: address }).redisReplicas).toBe(replicas)
    expect(readConfig({ REDIS_URL: address, REDIS_REPLICAS: '2' }).redisReplicas).toBe(2)
  })
})

describe('UPLOADS_DIR', () => {
  it('is a folder among the data of the pod, or another one', () => {
    expect(readConfig({ DATA_DIR: '/srv/pod' }).uploadsDir).toBe('/srv/pod/uploads')
    expect(readConfig({ DATA_DIR: '/srv/pod', UPLOADS_DIR: '/mnt/pictures' }).uploadsDir).toBe('/mnt/pictures')
  })
})

it('accepts pictures of up to ten megabytes, or of the size in the setting', () => {
  expect(readConfig({}).photoBytes).toBe(10 * 2 ** 20)
  expect(readConfig({ PHOTO_BYTES: '65536' }).photoBytes).toBe(65_536)
  expect(faultsOf({ PHOTO_BYTES: '0' })).toEqual([expect.stringMatching(/^PHOTO_BYTES must be .+\.$/)])
})

it('reads queues, concurrency and a socket path', () => {
  const config = readConfig({
    HOST: '/run/pod/web.sock',
    WORKER_QUEUES: 'inbound, fetch',
    WORKER_CONCURRENCY: 'fetch=32, outbound=128',
  })

  expect(config.listen).toEqual({ path: '/run/pod/web.sock' })
  expect(config.workerQueues).toEqual(['inbound', 'fetch'])
  expect(config.workerConcurrency).toEqual({ fetch: 32, outbound: 128 })
})

describe('ISOLATED', () => {
  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost', '/run/pod/copy.sock'])('serves this machine on %s', (HOST) => {
    expect(readConfig({ ISOLATED: 'true', HOST })).toMatchObject({ isolated: true })
  })

  it.each(['0.0.0.0', '::', '192.168.1.2', 'pod.example', '127.0.0.1.example'])('refuses HOST=%s', (HOST) => {
    expect(faultsOf({ ISOLATED: 'true', HOST })).toEqual([expect.stringMatching(/serves only this machine: set HOST/)])
    expect(readConfig({ HOST }).isolated).toBe(false)
  })

  it('refuses figures for other machines', () => {
    expect(faultsOf({ ISOLATED: 'true', ADMIN_LISTEN: '0.0.0.0:9394' })).toEqual([
      expect.stringMatching(/set ADMIN_LISTEN/),
    ])
    expect(readConfig({ ISOLATED: 'true', ADMIN_LISTEN: '127.0.0.1:9394' }).isolated).toBe(true)
  })

  it.each(['/srv/uploads', '/srv/copy', '/srv/copy-of-uploads', '/srv/copy/../uploads', 'uploads'])(
    'refuses pictures outside of the data folder, which may be those of the original: %s',
    (UPLOADS_DIR) => {
      expect(faultsOf({ ISOLATED: 'true', DATA_DIR: '/srv/copy', UPLOADS_DIR })).toEqual([
        expect.stringMatching(/set UPLOADS_DIR to a folder in DATA_DIR/),
      ])
      expect(readConfig({ DATA_DIR: '/srv/copy', UPLOADS_DIR }).isolated).toBe(false)
    },
  )

  it('has its pictures in the data folder', () => {
    const settings = { ISOLATED: 'true', DATA_DIR: '/srv/copy' }
    expect(readConfig({ ...settings, UPLOADS_DIR: '/srv/copy/pictures' }).uploadsDir).toBe('/srv/copy/pictures')
    expect(readConfig({ ...settings, UPLOADS_DIR: '' }).uploadsDir).toBe('/srv/copy/uploads')
  })
})

describe('backups and retention', () => {
  it('have defaults, and refuse times and days that are out of range', () => {
    expect(readConfig({})).toMatchObject({
      backupAt: '03:30',
      backupKeep: { daily: 7, weekly: 5, monthly: 12 },
      retention: { posts: 0, withComments: false, notifications: 365, dead: 30, tombstones: 400 },
    })
    expect(readConfig({ BACKUP_AT: 'off', BACKUP_KEEP: '3m' })).toMatchObject({
      backupAt: undefined,
      backupKeep: { daily: 0, weekly: 0, monthly: 3 },
    })
    expect(readConfig({ RETENTION_POSTS_DAYS: '30' }).retention.posts).toBe(30)
    for (const wrong of [
      { BACKUP_AT: '24:00' },
      { BACKUP_KEEP: 'd' },
      { RETENTION_POSTS_DAYS: '29' },
      { RETENTION_TOMBSTONES_DAYS: '10' },
      { INACTIVE_ACCOUNT_DAYS: '30' },
    ]) {
      expect(() => readConfig(wrong)).toThrow(`${Object.keys(wrong)[0]} must be`)
    }
  })
})

describe('each setting', () => {
  const allSettings = namesOfSettings(new Proxy({}, { get: () => 'set' }))

  it.each([
    ['docs/settings.md', settingsPage()],
    ['.env.example', exampleFile()],
  ])('stands in %s, which is current', async (path, current) => {
    const text = await readFile(join(import.meta.dirname, '..', path), 'utf8')

    expect(allSettings.length).toBeGreaterThan(30)
    expect(allSettings.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([])
    expect(text, 'npm run settings').toBe(current)
  })
})
