import { describe, expect, it } from 'vitest'
import { describeRedisTarget, readRedisAddress, withoutRedisPassword } from '../../src/jobs/queues/redis-address.js'

const NOBODY = { tls: false, username: undefined, password: undefined }

describe('the address of a Redis', () => {
  it.each(['redis://localhost', 'redis://:secret@db:6380/2', 'rediss://u:p@db.example', 'redis://[::1]:6379'])(
    '%s is one server',
    (text) => {
      expect(readRedisAddress(text)).toEqual({ kind: 'single', address: text })
    },
  )

  it.each([
    ['unix:///run/redis.sock', '/run/redis.sock'],
    ['unix:/run/redis.sock', '/run/redis.sock'],
  ])('%s is a socket', (text, address) => {
    expect(readRedisAddress(text)).toEqual({ kind: 'single', address })
  })

  it('lists any number of nodes of a cluster', () => {
    const nodes = [
      { host: 'a.example', port: 7000 },
      { host: '10.0.0.2', port: 6379 },
      { host: '::1', port: 7002 },
    ]
    expect(readRedisAddress('redis+cluster://a.example:7000,10.0.0.2,[::1]:7002')).toEqual({
      kind: 'cluster',
      nodes,
      ...NOBODY,
    })
    expect(readRedisAddress('rediss+cluster://pod:s%2Fecret@a:1')).toEqual({
      kind: 'cluster',
      nodes: [{ host: 'a', port: 1 }],
      tls: true,
      username: 'pod',
      password: 's/ecret',
    })
  })

  it('lists Sentinels and the name of the master', () => {
    const sentinels = [
      { host: 's1', port: 26_379 },
      { host: 's2', port: 5_000 },
    ]
    expect(readRedisAddress('redis+sentinel://s1,s2:5000/mymaster')).toEqual({
      kind: 'sentinel',
      sentinels,
      master: 'mymaster',
      db: 0,
      sentinelPassword: undefined,
      ...NOBODY,
    })
    expect(readRedisAddress('redis+sentinel://:secret@s1/main/3?sentinel_password=other')).toMatchObject({
      master: 'main',
      db: 3,
      username: undefined,
      password: 'secret',
      sentinelPassword: 'other',
    })
  })

  it.each([
    'localhost:6379',
    'http://localhost',
    'redis+cluster://',
    'redis+cluster://a:0',
    'redis+cluster://a:70000',
    'redis+cluster://a,,b',
    'redis+cluster://a/1',
    'redis+cluster://a?x=1',
    'redis+sentinel://a',
    'redis+sentinel://a/',
    'redis+sentinel://a/master/x',
    'redis+sentinel://a/master?pasword=1',
    'redis+cluster+tls://a',
  ])('%s is none', (text) => {
    expect(readRedisAddress(text)).toBeUndefined()
  })

  it.each([
    ['redis://:hunter2@db/1', 'redis://:***@db/1'],
    ['redis://db?password=hunter2', 'redis://db?password=***'],
    [
      'redis+sentinel://u:hunter2@a,b/m?sentinel_password=hunter2',
      'redis+sentinel://u:***@a,b/m?sentinel_password=***',
    ],
    ['redis://db:6379', 'redis://db:6379'],
  ])('%s is shown without its passwords', (text, shown) => {
    expect(withoutRedisPassword(text)).toBe(shown)
  })

  it('is described without its password', () => {
    expect(describeRedisTarget('redis://:hunter2@db:6380')).toBe('Redis on db:6380')
    expect(describeRedisTarget('unix:/run/redis.sock')).toBe('Redis on /run/redis.sock')
    expect(describeRedisTarget('redis+cluster://:hunter2@a,b:1')).toBe('the Redis Cluster of a:6379, b:1')
    expect(describeRedisTarget('redis+sentinel://a/m')).toBe('Redis, whose master m is known to a:26379')
  })
})
