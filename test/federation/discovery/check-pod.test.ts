import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { checkPod, type PodCheck, savePodCheck } from '../../../src/federation/discovery/check-pod.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import type { FakePods } from '../../support/federation/fake-pods.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const NS = 'http://nodeinfo.diaspora.software/ns/schema/'

let fakePods: FakePods
let pod: FederationPod
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
  fakePods = pod.fakePods
})
afterAll(() => pod.close())

/** A pod with a front page; its NodeInfo is served as given. */
function podWith(documents: Readonly<Record<string, unknown>> = {}): string {
  hosts += 1
  const host = `i${hosts}.example`
  fakePods.script(`${host}/`, (_request, response) => response.end('<h1>A pod</h1>'))
  for (const [path, document] of Object.entries(documents)) {
    fakePods.script(`${host}${path}`, (_request, response) =>
      response.end(typeof document === 'string' ? document : JSON.stringify(document)),
    )
  }
  return host
}

function linksTo(...versions: readonly string[]) {
  return { links: versions.map((version) => ({ rel: NS + version, href: `/nodeinfo/${version}` })) }
}

const software = { name: 'diaspora', version: '0.9.0.0-p1' }

describe('checkPod', () => {
  it('reads the software of the pod from the newest known version of NodeInfo', async () => {
    const host = podWith({
      '/.well-known/nodeinfo': linksTo('1.0', '9.9', '2.1', '2.0'),
      '/nodeinfo/2.1': { version: '2.1', software, protocols: ['diaspora'] },
    })

    expect(await checkPod(pod, `https://${host}`)).toMatchObject({
      status: 'no_errors',
      error: null,
      nodeInfo: { software: 'diaspora', version: '0.9.0.0-p1', protocols: ['diaspora'], adminAccount: null },
    })
  })

  it('reads the protocols of version 1.0, one list for each direction', async () => {
    const host = podWith({
      '/.well-known/nodeinfo': linksTo('1.0'),
      '/nodeinfo/1.0': {
        version: '1.0',
        software,
        protocols: { inbound: ['diaspora', 'friendica'], outbound: ['diaspora'] },
      },
    })

    expect(await checkPod(pod, `https://${host}`)).toMatchObject({ nodeInfo: { protocols: ['diaspora', 'friendica'] } })
  })

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['there is none', {}],
    ['the list is not JSON', { '/.well-known/nodeinfo': 'no' }],
    ['the list is empty', { '/.well-known/nodeinfo': { links: [] } }],
    ['the list is null', { '/.well-known/nodeinfo': null }],
    ['no version is known', { '/.well-known/nodeinfo': linksTo('3.0') }],
    ['its address is none', { '/.well-known/nodeinfo': { links: [{ rel: `${NS}2.0`, href: 'https://[' }] } }],
    ['the document is not there', { '/.well-known/nodeinfo': linksTo('2.0') }],
    ['the document is not JSON', { '/.well-known/nodeinfo': linksTo('2.0'), '/nodeinfo/2.0': '<html>' }],
    [
      'the software has no name',
      { '/.well-known/nodeinfo': linksTo('2.0'), '/nodeinfo/2.0': { software: {}, protocols: ['diaspora'] } },
    ],
    [
      'the name is none',
      {
        '/.well-known/nodeinfo': linksTo('2.0'),
        '/nodeinfo/2.0': { software: { ...software, name: 'Not A Name' }, protocols: ['diaspora'] },
      },
    ],
    [
      'there is no version',
      {
        '/.well-known/nodeinfo': linksTo('2.0'),
        '/nodeinfo/2.0': { software: { name: 'x' }, protocols: ['diaspora'] },
      },
    ],
    [
      'no protocols are named',
      { '/.well-known/nodeinfo': linksTo('2.0'), '/nodeinfo/2.0': { software, protocols: [] } },
    ],
  ])('calls NodeInfo missing when %s', async (_what, documents) => {
    const check = await checkPod(pod, `https://${podWith(documents)}`)

    expect(check).toMatchObject({ status: 'version_failed', error: expect.any(String), frontPage: expect.any(URL) })
    expect(check.nodeInfo).toBeUndefined()
  })

  it.each<[string, PodCheck['status'], (host: string) => void]>([
    [
      'answers with an error',
      'http_failed',
      (host) => fakePods.script(`${host}/`, (_request, response) => response.writeHead(500).end()),
    ],
    [
      'is not found',
      'http_failed',
      (host) => fakePods.script(`${host}/`, (_request, response) => response.writeHead(404).end()),
    ],
    [
      'leads to another host',
      'http_failed',
      (host) =>
        fakePods.script(`${host}/`, (_request, response) =>
          response.writeHead(302, { location: 'http://elsewhere.example/' }).end(),
        ),
    ],
    [
      'leads around',
      'http_failed',
      (host) => fakePods.script(`${host}/`, (_request, response) => response.writeHead(302, { location: '/' }).end()),
    ],
    ['breaks off', 'net_failed', (host) => fakePods.script(`${host}/`, (_request, response) => response.destroy())],
  ])('the status of a front page that %s is %s', async (_what, status, script) => {
    fakePods.script('elsewhere.example/', (_request, response) => response.end('all is well here'))
    const host = podWith()
    script(host)

    expect(await checkPod(pod, `https://${host}`)).toEqual({ status, error: expect.any(String) })
  })

  it.each<[PodCheck['status'], Parameters<FakePods['remotePods']>[0]]>([
    ['dns_failed', { resolve: () => Promise.reject(new Error('queryA ENOTFOUND')) }],
    ['unknown_error', { allowPrivate: 'none' }],
  ])('is %s when it does not get that far', async (status, options) => {
    expect(await checkPod({ ...pod, remotePods: fakePods.remotePods(options) }, `https://${podWith()}`)).toMatchObject({
      status,
    })
  })

  it('changes nothing about a pod when this process has too many requests', async () => {
    const limits = { fetchesPerHostPerMinute: 0 }

    await expect(
      checkPod({ ...pod, remotePods: fakePods.remotePods({ limits }) }, `https://${podWith()}`),
    ).rejects.toMatchObject({
      fault: 'busy',
    })
  })
})

describe('savePodCheck', () => {
  const hostPort = { host: 'noted.example', port: 443 }
  const well: PodCheck = {
    status: 'no_errors',
    error: null,
    frontPage: new URL('https://noted.example/'),
    nodeInfo: { software: 'otherpod', version: '2.1', protocols: ['diaspora'], adminAccount: null },
  }
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 12, minute))

  it('stores since when a pod is offline, and deletes this when it is back', async () => {
    await RemotePod.query(pod.db).insert({ ...hostPort, checkWanted: true })
    const down: PodCheck = { status: 'net_failed', error: 'refused' }

    await savePodCheck(pod.db, hostPort, down, at(0))
    expect(await savePodCheck(pod.db, hostPort, { ...down, status: 'dns_failed' }, at(5))).toMatchObject({
      status: 'dns_failed',
      lastError: 'refused',
      offlineSince: at(0),
      checkedAt: at(5),
      checkWanted: false,
      ssl: false,
      lastSuccessAt: null,
    })
    expect(await savePodCheck(pod.db, hostPort, well, at(9))).toMatchObject({
      status: 'no_errors',
      lastError: null,
      offlineSince: null,
      lastSuccessAt: at(9),
      ssl: true,
      software: 'otherpod',
      softwareVersion: '2.1',
    })
    expect(await savePodCheck(pod.db, hostPort, { status: 'version_failed', error: 'none' }, at(10))).toMatchObject({
      status: 'version_failed',
      offlineSince: null,
      software: 'otherpod',
    })
  })

  it('leaves a pod offline whose deliveries cannot be revived, so that the next check revives them', async () => {
    const { id: podId } = await RemotePod.query(pod.db).insert({
      host: 'revived.example',
      port: 443,
      offlineSince: at(0),
    })
    await pod.db.raw(
      `create function fail() returns trigger language plpgsql as $$ begin raise 'revival failed'; end $$`,
    )
    await pod.db.raw('create trigger fail before update on deliveries for each statement execute function fail()')
    onTestFinished(() => pod.db.raw('drop function fail cascade'))

    await expect(savePodCheck(pod.db, { host: 'revived.example', port: 443 }, well, at(1))).rejects.toThrow(
      'revival failed',
    )

    expect(await RemotePod.query(pod.db).findById(podId)).toMatchObject({ offlineSince: at(0), checkedAt: null })
  })

  it('inserts no row for a pod without a known person', async () => {
    const before = await pod.rows('pods')

    expect(await savePodCheck(pod.db, { host: 'unknown.example', port: 443 }, well, at(0))).toBeUndefined()

    expect(await pod.rows('pods')).toEqual(before)
  })
})
