import { describe, expect, it } from 'vitest'
import { isForOtherOrigins, isJsonPath, isPrivate, routedUrl } from '../../../src/web/server/paths.js'

describe('routedUrl', () => {
  it.each([
    ['/api/v1/user', '/api/v1/user'],
    ['/api/v1//posts', '/api/v1/posts'],
    ['///api////v1/posts//', '/api/v1/posts'],
    ['/api/v1/user/', '/api/v1/user'],
    ['/api/v1/user.json', '/api/v1/user'],
    ['/api/v1/user.json/', '/api/v1/user'],
    ['/api/v1/user.json?next=a//b.json', '/api/v1/user?next=a//b.json'],
    ['/api/openid_connect/jwks.json', '/api/openid_connect/jwks.json'],
    ['/', '/'],
    ['//', '/'],
    ['', '/'],
    ['?a=b', '/?a=b'],
    ['*', '/*'],
    ['https://pod.example/api/v1//user?x=1', '/api/v1/user?x=1'],
    ['http://pod.example', '/'],
    ['/api/v1/tags/caf%C3%A9%2Fbar', '/api/v1/tags/caf%C3%A9%2Fbar'],
    ['/api/v1/posts/%zz', '/api/v1/posts/%25zz'],
    ['/api/v1/posts/%ff', '/api/v1/posts/%25ff'],
    ['/a?b=%zz', '/a?b=%zz'],
    ['/%61pi/v1/us%65r%2ejson?a=%61', '/api/v1/user?a=%61'],
    ['/api/openid_connect/%61uthorizations/new', '/api/openid_connect/authorizations/new'],
    ['/api/v1/tags/%2561%2B%7e', '/api/v1/tags/%2561%2B~'],
  ])('turns %s into %s', (url, routed) => {
    expect(routedUrl(url)).toBe(routed)
  })
})

describe('the classification of paths', () => {
  it('does not treat a name with the same beginning as the same folder', () => {
    expect(isJsonPath('/apian')).toBe(false)
    expect(isPrivate('/api-docs')).toBe(false)
    expect(isForOtherOrigins('/nodeinfos')).toBe(false)
  })

  it.each([
    '/api/v1/user',
    '/api/openid_connect/access_tokens',
    '/api/openid_connect/user_info',
    '/.well-known/webfinger',
    '/.well-known/openid-configuration',
    '/.well-known/nodeinfo',
    '/nodeinfo/1.0',
  ])('lets web apps of other origins use %s', (path) => {
    expect(isForOtherOrigins(path)).toBe(true)
  })

  it.each([
    '/',
    '/users/sign_in',
    '/receive/public',
    '/api/openid_connect/authorizations/new',
    '/api/openid_connect/authorizations',
    '/api/openid_connect/user_applications',
  ])('keeps web apps of other origins away from %s', (path) => {
    expect(isForOtherOrigins(path)).toBe(false)
  })
})
