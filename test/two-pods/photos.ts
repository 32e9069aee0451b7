import sharp from 'sharp'
import { beforeAll, describe, expect, it } from 'vitest'
import { fromPhone } from '../support/files/pictures.js'
import type { ApiResponse } from '../support/pods/api-pod.js'
import {
  type CompletePod,
  type CompletePods,
  type CompletePodUser,
  untilQuiet,
} from '../support/processes/complete-pod.js'
import { type HttpClient, httpClientOf } from '../support/processes/complete-pod-client.js'
import { discoverEachOther, firstAspectOf, shareWith } from '../support/processes/complete-pod-users.js'

type Sizes = Readonly<Record<'raw' | 'large' | 'medium' | 'small', string>>

export function describePhotos(startedPods: () => CompletePods): void {
  describe('photos of one pod on another', { timeout: 180_000 }, () => {
    let left: CompletePod
    let right: CompletePod
    let alice: CompletePodUser
    let bob: CompletePodUser
    let aliceApp: HttpClient
    let bobApp: HttpClient
    let jpeg: Buffer
    beforeAll(async () => {
      ;[left, right] = startedPods()
      ;[alice, bob] = await Promise.all([left.addUser('pia'), right.addUser('paul')])
      await discoverEachOther(alice, bob)
      await shareWith(alice, bob)
      await shareWith(bob, alice)
      await untilQuiet(left, right)
      ;[aliceApp, bobApp] = await Promise.all([httpClientOf(alice), httpClientOf(bob)])
      jpeg = await fromPhone()
    }, 120_000)

    async function upload(query: string): Promise<ApiResponse['body']> {
      const { status, body } = await aliceApp.upload(`/photos${query}`, jpeg)
      expect(status).toBe(200)
      return body
    }
    /** As a browser of Bob's would load them, from the addresses that his pod gives it. */
    async function statusesOf(urls: readonly string[]): Promise<readonly number[]> {
      return Promise.all(urls.map(async (url) => (await fetch(url)).status))
    }
    async function expectLoadable(urls: readonly string[], podOfPhoto: CompletePod): Promise<void> {
      for (const url of urls) {
        expect(new URL(url).host).toBe(podOfPhoto.host)
        const answer = await fetch(url)
        expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/jpeg'])
        const bytes = Buffer.from(await answer.arrayBuffer())
        expect(await sharp(bytes).metadata()).toMatchObject({ format: 'jpeg' })
        expect(bytes.includes('Secret Artist')).toBe(false)
      }
    }
    const addressesOf = ({ raw, large, medium, small }: Sizes) => [raw, large, medium, small]

    it('can be loaded in all four sizes in a post, until it is deleted', async () => {
      const photo = await upload('?pending=true')
      const post = await aliceApp.post('/posts', { public: true, body: 'See', photos: [photo.guid] })
      await untilQuiet(left, right)

      const { photos } = (await bobApp.get(`/posts/${post.body.guid}`)).body
      expect(photos).toEqual([{ dimensions: { height: 80, width: 40 }, sizes: photo.sizes }])
      const addresses = addressesOf(photos[0].sizes)
      await expectLoadable(addresses, left)

      await aliceApp.delete(`/posts/${post.body.guid}`)
      await untilQuiet(left, right)

      expect(await statusesOf(addresses)).toEqual([404, 404, 404, 404])
      expect((await bobApp.get(`/photos/${photo.guid}`)).status).toBe(404)
    })

    it('are delivered without a post to the aspects they were shared with, until they are deleted', async () => {
      const photo = await upload(`?aspect_ids=${await firstAspectOf(alice)}`)
      await untilQuiet(left, right)

      const { body } = await bobApp.get(`/photos/${photo.guid}`)
      expect(body).toMatchObject({ guid: photo.guid, dimensions: { height: 80, width: 40 } })
      await expectLoadable(addressesOf(body.sizes), left)

      await aliceApp.delete(`/photos/${photo.guid}`)
      await untilQuiet(left, right)

      expect((await bobApp.get(`/photos/${photo.guid}`)).status).toBe(404)
      expect(await statusesOf(addressesOf(body.sizes))).toEqual([404, 404, 404, 404])
    })

    it('are shown as a profile picture, until it is deleted', async () => {
      const photo = await upload('?set_profile_picture=true')
      await untilQuiet(left, right)
      const avatar = async () => (await bobApp.get(`/users/${alice.guid}`)).body.avatar

      await expectLoadable(addressesOf(await avatar()), left)
      expect((await avatar()).small).toBe(photo.sizes.small)

      await aliceApp.delete(`/photos/${photo.guid}`)
      await untilQuiet(left, right)

      expect((await avatar()).large).toBe(`http://${right.host}/images/user/default.png`)
    })

    it('that were uploaded for a post are not delivered before it', async () => {
      const photo = await upload('?pending=true')
      await untilQuiet(left, right)

      expect((await bobApp.get(`/photos/${photo.guid}`)).status).toBe(404)
      expect(await right.open.db('photos').where({ guid: photo.guid })).toEqual([])
    })
  })
}
