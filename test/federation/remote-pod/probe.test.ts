import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { readAllowPrivate } from '../../../src/networks/private-hosts.js'
import { testRemotePods } from '../../support/federation/outgoing-http-client.js'
import { freePort } from '../../support/http/free-port.js'
import { type ScriptedServer, serveHttp, serveHttps } from '../../support/http/scripted-server.js'

const certificates = new URL('../../fixtures/certificates/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, certificates), 'utf8')
const ca = read('authority.pem')
const key = read('pod.example.key')
const good = { key, cert: read('pod.example.pem') }
const expired = { key, cert: read('pod.example-expired.pem') }

function closing(server: ScriptedServer): ScriptedServer {
  onTestFinished(() => server.close())
  return server
}

/** The steps of a probe of pod.example at a port of loopback. */
async function stepsOf(port: number, { scheme = 'https', addresses = ['127.0.0.1'] as readonly string[] } = {}) {
  const pods = testRemotePods({
    allowPrivate: readAllowPrivate(`pod.example:${port}`, []),
    resolve: async () => addresses,
    ca,
  })
  return (await pods.probe?.(`${scheme}://pod.example:${port}`)) ?? []
}

const names = (steps: readonly { readonly step: string; readonly ok: boolean }[]) =>
  steps.map(({ step, ok }) => `${step} ${ok ? 'passed' : 'failed'}`)

it('a probe reports name, address, connection, certificate and answer', async () => {
  const server = closing(await serveHttps(good, (_request, response) => response.end('a pod')))

  const steps = await stepsOf(server.port)

  expect(names(steps)).toEqual(['dns passed', 'address passed', 'tcp passed', 'tls passed', 'http passed'])
  expect(steps.map(({ detail }) => detail)).toEqual([
    '127.0.0.1',
    expect.any(String),
    `127.0.0.1, port ${server.port}`,
    expect.stringMatching(/^TLSv1\.3, certificate of .+, valid for \d+ days\.$/),
    'Status 200, no media type.',
  ])
  for (const { ms } of steps) expect(ms).toBeGreaterThanOrEqual(0)
})

it('a probe over plain http has no step of a certificate', async () => {
  const server = closing(await serveHttp((_request, response) => response.end('a pod')))
  expect(names(await stepsOf(server.port, { scheme: 'http' }))).toEqual([
    'dns passed',
    'address passed',
    'tcp passed',
    'http passed',
  ])
})

it('a probe ends with the first step that fails', async () => {
  const refusing = await freePort()
  const old = closing(await serveHttps(expired, (_request, response) => response.end('a pod')))
  const broken = closing(await serveHttps(good, (_request, response) => response.writeHead(503).end()))

  expect(names(await stepsOf(refusing, { addresses: [] }))).toEqual(['dns failed'])
  expect(names(await stepsOf(refusing))).toEqual(['dns passed', 'address passed', 'tcp failed'])
  const withOld = await stepsOf(old.port)
  expect(names(withOld).at(-1)).toBe('tls failed')
  expect(withOld.at(-1)?.detail).toMatch(/CERT_HAS_EXPIRED.*valid for -\d+ days/)
  const withBroken = await stepsOf(broken.port)
  expect([names(withBroken).at(-1), withBroken.at(-1)?.detail]).toEqual(['http failed', 'Status 503, no media type.'])
})

it('a probe connects to no address that requests may not reach', async () => {
  const server = closing(await serveHttp((_request, response) => response.end('secret')))
  const pods = testRemotePods({ resolve: async () => ['127.0.0.1'] })

  const ofName = (await pods.probe?.(`https://pod.example:${server.port}`)) ?? []
  const ofAddress = (await pods.probe?.('http://127.0.0.1/')) ?? []

  expect(names(ofName)).toEqual(['dns passed', 'address failed'])
  expect(names(ofAddress)).toEqual(['address failed'])
  expect(server.connections).toBe(0)
})
