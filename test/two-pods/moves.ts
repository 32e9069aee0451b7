import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Person } from '../../src/persistence/models/person.js'
import { fromPhone } from '../support/files/pictures.js'
import {
  type CompletePod,
  type CompletePods,
  type CompletePodUser,
  untilQuiet,
} from '../support/processes/complete-pod.js'
import { type HttpClient, httpClientOf } from '../support/processes/complete-pod-client.js'
import { contactOf, discoverEachOther, postAt, shareWith } from '../support/processes/complete-pod-users.js'

/** Workers look for announcements every ten seconds. */
const ANNOUNCED = { timeout: 45_000, interval: 200 }

/**
 * An account of the first pod moves to the second one, and then to the third one, where its readers are. Each test finds the pods as the
 * one before has left them.
 */
export function describeMoves(startedPods: () => CompletePods): void {
  describe('an account that moves', { timeout: 180_000 }, () => {
    let pods: CompletePods
    let a: CompletePod | undefined
    let b: CompletePod | undefined
    let c: CompletePod | undefined
    let alice: CompletePodUser
    let al: CompletePodUser
    let alma: CompletePodUser
    let carl: CompletePodUser
    let dora: CompletePodUser
    let aliceApp: HttpClient
    let alApp: HttpClient
    let carlApp: HttpClient
    let folder: string
    let post: string
    let photo: { readonly guid: string; readonly raw: string }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'pod-moves-'))
      pods = startedPods()
      ;[a, b, c] = pods
      ;[alice, al, carl, dora] = await Promise.all([
        podOf(a).addUser('astrid'),
        podOf(b).addUser('adal'),
        podOf(c).addUser('kai'),
        podOf(c).addUser('dina'),
      ])
      alma = await podOf(c).addUser('adina')
      await discoverEachOther(alice, carl)
      await discoverEachOther(alice, dora)
      await podOf(b).json('fetch', carl.address)
      // Carl follows Alice, who does not know it; Dora and Alice share with each other.
      await shareWith(carl, alice)
      await shareWith(dora, alice)
      await shareWith(alice, dora)
      await quiet()
      ;[aliceApp, alApp, carlApp] = await Promise.all([httpClientOf(alice), httpClientOf(al), httpClientOf(carl)])
    }, 180_000)
    afterAll(() => rm(folder, { recursive: true, force: true }))

    const quiet = () => untilQuiet(...pods)
    const text = (body: string) => ({ public: true, body })

    /** Exports the account on its pod and imports it on the other one; resolves with the counts by section. */
    async function move(from: CompletePodUser, to: CompletePodUser) {
      const [username = ''] = from.address.split('@')
      const [newName = ''] = to.address.split('@')
      const [file, photos] = [join(folder, `${username}.json.gz`), join(folder, `${username}.zip`)]
      await from.pod.json('archive', 'export', username, '--out', file, '--photos', photos)
      const report = await to.pod.json(
        ...['archive', 'import', file, '--as', newName, '--photos', photos, '--move', from.address],
      )
      return Object(report)
    }

    const authorAt = async (pod: CompletePod, guid: string) => (await postAt(pod, guid))?.author
    const redirectOf = async (pod: CompletePod, path: string, accept = 'text/html') => {
      const { status, headers } = await fetch(`http://${pod.host}${path}`, { redirect: 'manual', headers: { accept } })
      return [status, headers.get('location')]
    }

    /** Whether a pod has received the moves that another one announces. */
    async function notified(announcing: CompletePod, pod: CompletePod): Promise<readonly boolean[]> {
      const rows = await announcing.open
        .db('migration_announcements')
        .join('pods', 'pods.id', 'migration_announcements.podId')
        .where({ port: Number(new URL(`http://${pod.host}`).port) })
        .select('deliveredAt')
      return rows.map(({ deliveredAt }) => deliveredAt !== null)
    }

    it('brings its posts, photos and comments of others along, under their guids', async () => {
      const { body } = await aliceApp.upload('/photos?pending=true', await fromPhone())
      photo = { guid: body.guid, raw: body.sizes.raw }
      post = (await aliceApp.post('/posts', { ...text('Before the move'), photos: [photo.guid] })).body.guid
      await quiet()
      await carlApp.post(`/posts/${post}/comments`, { body: 'From another pod' })
      await carlApp.post(`/posts/${post}/likes`)
      await quiet()

      // The third pod hears of the move later.
      await podOf(b).json('pods', 'pause', podOf(c).host, '--reason', 'a test')
      const report = await move(alice, al)
      expect(report).toMatchObject({ state: 'done' })
      await vi.waitFor(async () => expect(await authorAt(podOf(a), post)).toBe(al.address), ANNOUNCED)
      await quiet()

      const moved = await postAt(podOf(b), post)
      expect(moved).toMatchObject({ author: al.address, text: 'Before the move', likes: [carl.address] })
      expect(moved?.comments).toMatchObject([{ author: carl.address, text: 'From another pod' }])
      expect(await authorAt(podOf(c), post)).toBe(alice.address)
    })

    it('leads from its old addresses to the new ones', async () => {
      const [old, now] = [podOf(a), `http://${podOf(b).host}`]
      expect(await redirectOf(old, `/people/${alice.guid}`)).toEqual([301, `${now}/people/${al.guid}`])
      expect(await redirectOf(old, '/u/astrid')).toEqual([301, `${now}/people/${al.guid}`])
      expect(await redirectOf(old, `/people/${alice.guid}`, 'application/json')).toEqual([410, null])
      expect(await redirectOf(old, `/posts/${post}`)).toEqual([302, `${now}/posts/${post}`])
      expect(await redirectOf(old, `/fetch/post/${post}`)).toEqual([302, `${now}/fetch/post/${post}`])
      const webFinger = await fetch(`http://${old.host}/.well-known/webfinger?resource=acct:${alice.address}`)
      const { links } = Object(await webFinger.json())
      const { href } = links.find(({ rel }: { rel: string }) => rel === 'successor-version')
      const answers = [await fetch(href), await fetch(href.replace(old.host, podOf(b).host))]
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1)
      expect((await aliceApp.get('/user')).status).toBe(401)
    })

    it('gets a comment that is sent to its old pod, whose pod then knows the move', async () => {
      await carlApp.post(`/posts/${post}/comments`, { body: 'Late' })
      await vi.waitFor(async () => {
        const moved = await postAt(podOf(b), post)
        expect(moved?.comments.map((comment) => comment.text)).toContain('Late')
        expect(await authorAt(podOf(c), post)).toBe(al.address)
      }, ANNOUNCED)
      await podOf(b).json('pods', 'resume', podOf(c).host, '--reason', 'a test')
      await vi.waitFor(async () => expect(await notified(podOf(b), podOf(c))).toEqual([true]), ANNOUNCED)
      await quiet()
    })

    it('keeps its followers, also those who were no contacts, and its contacts', async () => {
      for (const reader of [carl, dora]) {
        expect(await contactOf(reader, al)).toMatchObject({ receiving: true })
        expect(await contactOf(reader, alice)).toEqual({ sharing: false, receiving: false })
      }
      expect(await contactOf(al, dora)).toEqual({ sharing: true, receiving: true })
      const { guid } = (await alApp.post('/posts', text('After the move'))).body
      await quiet()
      expect(await authorAt(podOf(c), guid)).toBe(al.address)
    })

    it('keeps its pictures at addresses that other pods can build', async () => {
      const { photos } = (await carlApp.get(`/posts/${post}`)).body
      const [{ sizes }] = photos
      for (const url of Object.values<string>(sizes)) {
        expect(new URL(url).host).toBe(podOf(b).host)
        expect((await fetch(url)).status).toBe(200)
      }
      expect((await fetch(photo.raw)).status).toBe(200)
    })

    it('is found by its old network ID in mentions', async () => {
      const { guid } = (await carlApp.post('/posts', text(`Hello @{Alice; ${alice.address}}`))).body
      await quiet()
      expect((await postAt(podOf(b), guid))?.mentioned).toEqual([al.address])
      const { body } = await alApp.get('/notifications?only_unread=true')
      expect(body.filter(({ type }: { type: string }) => type === 'mentioned')).toHaveLength(1)
    })

    it('adds nothing when it is imported again', async () => {
      const file = join(folder, 'astrid.json.gz')
      const report = await podOf(b).json('archive', 'import', file, '--as', 'adal', '--move', alice.address)
      const { posts, others_relayables: others } = Object(report).sections
      expect([posts.imported, posts.refused, others.imported, others.refused]).toEqual([0, 0, 0, 0])
      await quiet()
      expect(await notified(podOf(b), podOf(c))).toEqual([true])
    })

    it('moves on to a third pod, to which all old addresses lead, and never back', async () => {
      expect(await move(al, alma)).toMatchObject({ state: 'done' })
      await vi.waitFor(async () => {
        expect(await authorAt(podOf(a), post)).toBe(alma.address)
        expect(await authorAt(podOf(b), post)).toBe(alma.address)
      }, ANNOUNCED)
      await quiet()
      const now = `http://${podOf(c).host}`
      expect(await redirectOf(podOf(a), `/people/${alice.guid}`)).toEqual([301, `${now}/people/${alma.guid}`])
      expect(await redirectOf(podOf(b), `/people/${al.guid}`)).toEqual([301, `${now}/people/${alma.guid}`])
      expect(await redirectOf(podOf(a), `/posts/${post}`)).toEqual([302, `${now}/posts/${post}`])
      expect((await postAt(podOf(c), post))?.comments).toHaveLength(2)
      for (const pod of pods) {
        const people = await Person.query(pod.open.db).whereIn('address', [alice.address, al.address])
        expect(people.every(({ closedAt }) => closedAt !== null)).toBe(true)
      }

      const back = await podOf(b).addUser('alfred')
      const file = join(folder, 'astrid.json.gz')
      const { code, stderr } = await back.pod.command(
        ...['archive', 'import', file, '--as', 'alfred', '--move', alice.address],
      )
      expect([code, stderr]).toEqual([1, expect.stringContaining('moved')])
    })
  })
}

function podOf(pod: CompletePod | undefined): CompletePod {
  if (pod === undefined) throw new Error('The pod is not started.')
  return pod
}
