import { describe, expect, it, onTestFinished } from 'vitest'
import { readAllowPrivate } from '../../../src/networks/private-hosts.js'
import { faultOfExchange, testRemotePods } from '../../support/federation/outgoing-http-client.js'
import { type ScriptedServer, serveHttp } from '../../support/http/scripted-server.js'

/** Redirects from `/<status>/<to>` to whatever is behind the status, and answers everything else. */
async function serveRedirects(): Promise<ScriptedServer & { readonly paths: readonly string[] }> {
  const paths: string[] = []
  const server = await serveHttp((request, response) => {
    const path = request.url ?? '/'
    paths.push(path)
    const [, status, to] = /^\/(30[0-9])\/(.*)$/.exec(path) ?? []
    if (status === undefined) response.end(`answer of ${path}`)
    else if (to === '') response.writeHead(Number(status)).end('no location')
    else response.writeHead(Number(status), { location: decodeURIComponent(to ?? '') }).end('elsewhere')
  })
  onTestFinished(() => server.close())
  return Object.assign(server, { paths })
}

const hop = (to: string, status = 302) => `/${status}/${encodeURIComponent(to)}`

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])('with %i is followed, and the answer has the final URL', async (status) => {
    const server = await serveRedirects()
    const pods = testRemotePods({ allowPrivate: 'all' })
    const start = `http://127.0.0.1:${server.port}${hop('../end?x=1', status)}`
    const answer = await pods.get(start, { maxBytes: 100, redirects: 1 })
    expect(answer.url.href).toBe(`http://127.0.0.1:${server.port}/end?x=1`)
    expect(answer.body.toString()).toBe('answer of /end?x=1')
  })

  it('is followed four times and not five, on one connection', async () => {
    const server = await serveRedirects()
    const pods = testRemotePods({ allowPrivate: 'all' })
    const four = hop(hop(hop(hop('/end'))))
    const base = `http://127.0.0.1:${server.port}`
    expect((await pods.get(`${base}${four}`, { maxBytes: 100, redirects: 4 })).url.pathname).toBe('/end')
    const five = pods.get(`${base}${hop(four)}`, { maxBytes: 100, redirects: 4 })
    expect(await faultOfExchange(five)).toBe('too_many_redirects')
    expect(server.paths).toHaveLength(10)
    expect(server.connections).toBe(1)
  })

  it('with a loop ends as too_many_redirects', async () => {
    const server = await serveHttp((_request, response) => response.writeHead(302, { location: '/' }).end())
    onTestFinished(() => server.close())
    const pods = testRemotePods({ allowPrivate: 'all' })
    const circle = pods.get(`http://127.0.0.1:${server.port}/`, { maxBytes: 100, redirects: 4 })
    expect(await faultOfExchange(circle)).toBe('too_many_redirects')
  })

  it('without a location is an answer, like any other status', async () => {
    const server = await serveRedirects()
    const pods = testRemotePods({ allowPrivate: 'all' })
    for (const path of ['/302/', hop('/end', 304), hop('/end', 300), hop('/end', 305)]) {
      const answer = await pods.get(`http://127.0.0.1:${server.port}${path}`, { maxBytes: 100, redirects: 4 })
      expect(answer.status).toBe(Number(path.slice(1, 4)))
      expect(answer.body).toHaveLength(0)
    }
  })

  it('may lead to another host, which is checked like the first one', async () => {
    const server = await serveRedirects()
    const other = await serveRedirects()
    const names: string[] = []
    const pods = testRemotePods({
      allowPrivate: readAllowPrivate(`pod.example:${server.port},other.example:${other.port}`, []),
      resolve: async (name) => {
        names.push(name)
        return ['127.0.0.1']
      },
    })
    const ask = (to: string) => pods.get(`http://pod.example:${server.port}${hop(to)}`, { maxBytes: 100, redirects: 4 })
    expect((await ask(`http://other.example:${other.port}/end`)).body.toString()).toBe('answer of /end')
    expect(names).toEqual(['pod.example', 'other.example'])

    for (const to of [
      `http://127.0.0.1:${other.port}/`,
      `http://localhost:${other.port}/`,
      `http://[::1]:${other.port}/`,
      `https://127.1:${other.port}/`,
      `https://third.example:${other.port}/`,
      `//2130706433:${other.port}/`,
      `http://user@other.example:${other.port}/`,
      `http://other.example:${other.port}/#part`,
      'http://other.example:22/',
      'ftp://other.example/',
      'javascript:alert(1)',
      'http://',
    ]) {
      expect(await faultOfExchange(ask(to)), to).toBe('not_allowed')
    }
    expect(other.paths).toEqual(['/end'])
  })

  it('is refused to another host with the option mustStayOnHost', async () => {
    const server = await serveRedirects()
    const pods = testRemotePods({ allowPrivate: 'all' })
    const ask = (to: string) =>
      pods.get(`http://127.0.0.1:${server.port}${hop(to)}`, { maxBytes: 100, redirects: 3, mustStayOnHost: true })
    expect((await ask('/end')).url.pathname).toBe('/end')
    expect(await faultOfExchange(ask(`http://localhost:${server.port}/`))).toBe('moved')
    expect(server.paths).toHaveLength(3)
  })

  it('is never followed for a delivery', async () => {
    const server = await serveRedirects()
    const pods = testRemotePods({ allowPrivate: 'all' })
    for (const status of [301, 302, 303, 307, 308]) {
      const answer = await pods.post(`http://127.0.0.1:${server.port}${hop('/end', status)}`, 'text/plain', 'x')
      expect(answer.status).toBe(status)
    }
    expect(server.paths).not.toContain('/end')
  })
})
