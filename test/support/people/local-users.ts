import type { FastifyInstance, InjectOptions } from 'fastify'
import { type Account, createUser } from '../../../src/domain/accounts/accounts.js'
import { ALWAYS_GRANTED, SCOPES, type Scope } from '../../../src/domain/accounts/scopes.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { findViewer, type Viewer } from '../../../src/domain/accounts/viewers.js'
import { Person, Profile } from '../../../src/persistence/models/person.js'
import { User } from '../../../src/persistence/models/user.js'
import type { Services } from '../../../src/services/services.js'
import { byName } from './by-name.js'

const TOKEN_LIFETIME_SECONDS = 3_600

type InjectResponse = Awaited<ReturnType<FastifyInstance['inject']>>

/** A user of the pod under test, with a client. */
export interface TestPerson extends TestClient {
  readonly account: Account
  /** Another client of the user, with these scopes and those of every client. */
  with(...scopes: Scope[]): Promise<TestClient>
  editProfile(fields: Partial<Pick<Profile, EditableField>>): Promise<void>
}

type EditableField =
  | 'firstName'
  | 'lastName'
  | 'bio'
  | 'location'
  | 'gender'
  | 'birthday'
  | 'searchable'
  | 'publicDetails'
  | 'nsfw'
  | 'tags'
  | 'imageUrl'
  | 'imageUrlMedium'
  | 'imageUrlSmall'

/** A client app that sends its token in the header. */
interface TestClient {
  readonly token: string
  get(url: string, headers?: Record<string, string>): Promise<InjectResponse>
  post(url: string, body?: object): Promise<InjectResponse>
  patch(url: string, body?: object): Promise<InjectResponse>
  delete(url: string): Promise<InjectResponse>
}

/** Creates people, each once and all concurrently; a second call returns the same people. */
export function peopleOf(pod: Services, app: FastifyInstance) {
  const known = new Map<string, Promise<TestPerson>>()

  function person(name: string): Promise<TestPerson> {
    const created = known.get(name) ?? makePerson(pod, app, name)
    known.set(name, created)
    return created
  }

  return async <Name extends string>(...names: Name[]): Promise<Record<Name, TestPerson>> => {
    await Promise.all(names.map(person))
    return byName(names, person)
  }
}

/** A local user with the fields that the federation layer needs, without a client. */
export interface LocalUser {
  readonly userId: number
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly publicKey: string
}

/** Creates a local user, without a client. */
export async function addLocalUser(pod: Services, username: string): Promise<LocalUser> {
  const { guid, address } = await createUser(pod, { username, password: `the password of ${username}` })
  const { id: userId, personId: id } = await User.byUsername(pod.db, username).throwIfNotFound()
  const { publicKey } = await Person.query(pod.db).findById(id).throwIfNotFound()
  return { userId, id, guid, address, publicKey }
}

/** The viewer of a client. */
export async function viewerOf(pod: Services, { token }: Pick<TestPerson, 'token'>): Promise<Viewer> {
  const viewer = await findViewer(pod, token)
  if (viewer === undefined) throw new Error('The token of the person is not valid.')
  return viewer
}

async function makePerson(pod: Services, app: FastifyInstance, username: string): Promise<TestPerson> {
  const account = await createUser(pod, { username, password: `the password of ${username}` })
  const client = (scopes: readonly Scope[]) => makeClient(pod, app, username, scopes)
  return {
    account,
    ...(await client(SCOPES)),
    with: (...scopes) => client(['openid', ALWAYS_GRANTED, ...scopes]),
    async editProfile(fields) {
      const person = await Person.query(pod.db).findOne({ guid: account.guid }).throwIfNotFound()
      const profile = await Profile.query(pod.db).patchAndFetchById(person.id, fields)
      const name = `${profile.firstName ?? ''} ${profile.lastName ?? ''}`.trim()
      const avatarUrl = profile.imageUrlMedium ?? profile.imageUrl
      await person.$query(pod.db).patch({ name, avatarUrl })
    },
  }
}

async function makeClient(
  pod: Services,
  app: FastifyInstance,
  username: string,
  scopes: readonly Scope[],
): Promise<TestClient> {
  const { accessToken } = await mintToken(pod, username, { scopes, lifetime: TOKEN_LIFETIME_SECONDS })
  const send = (method: InjectOptions['method'], url: string, payload?: object, headers = {}) =>
    app.inject({
      method,
      url,
      headers: { authorization: `Bearer ${accessToken}`, ...headers },
      ...(payload && { payload }),
    } as InjectOptions) // the type of the body does not allow the spread
  return {
    token: accessToken,
    get: (url, headers) => send('GET', url, undefined, headers),
    post: (url, body) => send('POST', url, body),
    patch: (url, body) => send('PATCH', url, body),
    delete: (url) => send('DELETE', url),
  }
}
