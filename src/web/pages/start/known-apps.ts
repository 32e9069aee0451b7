/** A client app that is known to work with the API of this pod. */
export interface KnownApp {
  readonly name: string
  /** The systems on which it runs; names that are the same in every language. */
  readonly systems: readonly string[]
  /** Where a person gets the app. */
  readonly url: string
}

/** The requirements of each app are in test/api/sign-in/known-client.test.ts. */
export const KNOWN_APPS: readonly KnownApp[] = [
  { name: 'insporation*', systems: ['Android'], url: 'https://github.com/jhass/insporation' },
]

/** A list of client apps, kept by the project diaspora*. */
export const APPS_URL = 'https://wiki.diasporafoundation.org/Tools_to_use_with_Diaspora'
