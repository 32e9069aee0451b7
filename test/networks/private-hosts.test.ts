import { describe, expect, it } from 'vitest'
import { isPrivateHostAllowed, readAllowPrivate } from '../../src/networks/private-hosts.js'

function read(text: string | undefined) {
  const faults: string[] = []
  return { allow: readAllowPrivate(text, faults), faults }
}

describe('ALLOW_PRIVATE_ADDRESSES', () => {
  it.each([undefined, '', ' ', 'false', 'FALSE'])('opens nothing when it is %j', (text) => {
    expect(read(text)).toEqual({ allow: 'none', faults: [] })
  })

  it.each(['true', ' True '])('opens everything when it is %j', (text) => {
    expect(read(text)).toEqual({ allow: 'all', faults: [] })
  })

  it('reads a list, each host in its one spelling', () => {
    expect(read('Localhost:3001, 127.1:03002,[0:0::1]:80,,bücher.example:443')).toEqual({
      allow: new Set(['localhost:3001', '127.0.0.1:3002', '[::1]:80', 'xn--bcher-kva.example:443']),
      faults: [],
    })
  })

  it.each([
    'localhost',
    'localhost:',
    ':3000',
    '::1:3000',
    'localhost:0',
    'localhost:65536',
    'localhost:http',
    'http://localhost:3000',
    'localhost:3000/path',
    'user@localhost:3000',
    '*:3000',
    '127.0.0.1/8:80',
    'yes',
  ])('says what is wrong with %j', (text) => {
    const { faults } = read(`localhost:3001,${text}`)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(/^ALLOW_PRIVATE_ADDRESSES must be .*\.$/)
    expect(faults[0]).toContain(`: ${text}.`)
  })

  it('opens exactly the host and the port it names', () => {
    const { allow } = read('localhost:3001,127.0.0.1:443,pod.test:80')
    const isAllowed = (url: string) => isPrivateHostAllowed(allow, new URL(url))
    expect(isAllowed('http://localhost:3001/x')).toBe(true)
    expect(isAllowed('https://LOCALHOST:3001/')).toBe(true)
    expect(isAllowed('https://127.1/')).toBe(true)
    expect(isAllowed('http://pod.test/')).toBe(true)
    expect(isAllowed('http://localhost:3002/')).toBe(false)
    expect(isAllowed('http://localhost/')).toBe(false)
    expect(isAllowed('http://127.0.0.1:3001/')).toBe(false)
    expect(isAllowed('http://127.0.0.1/')).toBe(false)
    expect(isAllowed('https://pod.test/')).toBe(false)
    expect(isAllowed('http://evil.localhost:3001/')).toBe(false)
  })
})
