import { expect, it } from 'vitest'
import { normaliseTagName } from '../../src/domain/posts/tags.js'
import { findTags } from '../../src/protocol/mentions.js'

it.each(['\u055B', '\u055C', '\u055E', '\u058A'])('the Armenian mark %s is part of a tag', (mark) => {
  const tag = `ինչ${mark}ու`

  expect(findTags(`Look: #${tag}!`).map((found) => found.tag)).toEqual([tag])
  expect(normaliseTagName(`#${tag}`)).toBe(tag)
})
