import { describe, expect, it } from 'vitest'
import { buildSerializer, compileOnce } from '../../../src/web/server/schemas/serializers.js'

const route = { method: 'GET', url: '/', httpStatus: '200' }
const textField = () => ({ type: 'object', properties: { name: { type: 'string' } } })
const linked = { $ref: 'Name#' }

describe('serializers of responses', () => {
  it('are compiled once for equal schemas', () => {
    const compiled = compileOnce({}, undefined, { ...route, schema: textField() })

    expect(compileOnce({}, undefined, { ...route, url: '/other', schema: textField() })).toBe(compiled)
    expect(buildSerializer({})({ ...route, schema: textField() })({ name: 'ann', secret: 1 })).toBe('{"name":"ann"}')
  })

  it('are not shared by apps whose named schemas differ', () => {
    const asText = buildSerializer({ Name: { $id: 'Name', type: 'string' } })({ ...route, schema: linked })
    const asNumber = buildSerializer({ Name: { $id: 'Name', type: 'number' } })({ ...route, schema: linked })

    expect([asText('5'), asNumber('5')]).toEqual(['"5"', '5'])
  })
})
