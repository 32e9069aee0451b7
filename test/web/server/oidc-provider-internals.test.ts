import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { loadLibrary } from '../../../src/web/oidc/provider-internals/load-library.js'
import { testLog } from '../../support/assertions/test-log.js'

const UPGRADE =
  'src/web/oidc/provider-internals was written for oidc-provider 9.13.3: read what it overrides in the new version, then change this test.'

const main = fileURLToPath(import.meta.resolve('oidc-provider'))

it('pins the version of oidc-provider for which its models are patched', () => {
  const { version } = JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8'))
  expect(version, UPGRADE).toBe('9.13.3')
})

it('the models of oidc-provider have the members that are patched', async () => {
  const { Provider } = await loadLibrary(testLog())
  const provider: unknown = new Provider('https://pod.example')
  const memberOf = (...path: readonly string[]) =>
    path.reduce<unknown>((found, name) => (found === undefined ? found : Reflect.get(Object(found), name)), provider)

  for (const model of ['AccessToken', 'RefreshToken', 'AuthorizationCode']) {
    expect(memberOf(model, 'prototype', 'generateTokenId'), `${model}.generateTokenId is gone. ${UPGRADE}`).toBeTypeOf(
      'function',
    )
  }
  for (const name of ['compareClientSecret', 'redirectUriAllowed']) {
    expect(memberOf('Client', 'prototype', name), `Client.${name} is gone. ${UPGRADE}`).toBeTypeOf('function')
  }
  expect(memberOf('Client', 'Schema', 'prototype', 'redirectUris'), UPGRADE).toBeTypeOf('function')
  expect(memberOf('IdToken', 'prototype', 'payload'), UPGRADE).toBeTypeOf('function')
  const client = Object(memberOf('Client', 'prototype'))
  expect(Object.getOwnPropertyDescriptor(client, 'clientAuthMethod')?.get, UPGRADE).toBeTypeOf('function')
})
