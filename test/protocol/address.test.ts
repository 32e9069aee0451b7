import { describe, expect, it } from 'vitest'
import { isAddress, parseAddress, splitAddress } from '../../src/protocol/address.js'

describe('an address', () => {
  it.each([
    'alice@pod.example',
    'a_b-c.d@x',
    'alice@pod.example:3000',
    'alice@127.0.0.1',
    'alice@[::1]:3000',
    'alice@[2001:db8::7]',
    'älice@bücher.example',
    'жанна٣@пример.example',
    `${'a'.repeat(243)}@pod.example`,
    `${'𞤢'.repeat(243)}@pod.example`,
  ])('may be %s', (text) => expect(isAddress(text)).toBe(true))

  it.each([
    '',
    'alice',
    '@pod.example',
    'alice@',
    'Alice@pod.example',
    'alice@Pod.example',
    'alice@pod_x.example',
    'al ice@pod.example',
    ' alice@pod.example',
    'alice@pod.example\n',
    'alice@pod.example/x',
    'alice@pod.example:',
    'alice@pod.example:x',
    'alice@.example',
    'a@b@c.example',
    'acct:alice@pod.example',
    'alice@[]',
    'alice@[zz]',
    'alice@[1:2]',
    'alice@[1:2:3:4:5:6:7:8:9]',
    `${'a'.repeat(244)}@pod.example`,
    `${'𞤢'.repeat(244)}@pod.example`,
    'a'.repeat(1_000_000),
  ])('is never %j', (text) => expect(isAddress(text)).toBe(false))

  it('has a name and a host, with the port where it has one', () => {
    expect(splitAddress('alice@pod.example:3000')).toEqual({ name: 'alice', host: 'pod.example:3000' })
    expect(splitAddress('alice@[::1]:3000')).toEqual({ name: 'alice', host: '[::1]:3000' })
    expect(splitAddress('alice')).toBeUndefined()
  })

  it('is found in typed texts', () => {
    expect(parseAddress(' acct:Alice@Pod.example\n')).toBe('alice@pod.example')
    expect(parseAddress('ACCT:alice@pod.example')).toBe('alice@pod.example')
    expect(parseAddress('acct:acct:alice@pod.example')).toBeUndefined()
    expect(parseAddress('https://pod.example/u/alice')).toBeUndefined()
  })
})
