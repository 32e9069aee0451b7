import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type AccountSettings, changeSettings, getSettings } from '../../../domain/accounts/settings.js'
import type { Viewer } from '../../../domain/accounts/viewers.js'
import { Refusal } from '../../../domain/refusals.js'
import { presentSettings } from '../../presenters/settings.js'
import { refTo } from '../../schemas/references.js'
import { readSettingsChange, SettingsChanges, UserSettings } from '../../schemas/settings.js'
import { buildWeakTag, namesTag } from '../../server/entity-tags.js'

/** The settings of an account, without what only its pages change: address, password, factors, sessions, closing. */
export const settingsApiRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const present = (settings: AccountSettings, { scopes }: Viewer) =>
    presentSettings(settings, {
      canShowEmail: scopes.has('email'),
      isMailAvailable: app.services.config.mail !== undefined,
    })

  app.get(
    '/user/settings',
    {
      schema: {
        operationId: 'getSettings',
        tags: ['Own profile'],
        summary: 'Read your settings',
        description: 'The scope `email` adds the e-mail address.',
        response: { 200: refTo(UserSettings, 'Your settings.') },
      },
      config: { scopes: ['profile:read_private'] },
    },
    async ({ services, viewer }) => present(await getSettings(services, viewer.userId), viewer),
  )

  app.patch(
    '/user/settings',
    {
      schema: {
        operationId: 'changeSettings',
        tags: ['Own profile'],
        summary: 'Change your settings',
        description:
          'Changes the given fields, all of them or none. With the `ETag` of a read in `If-Match` nothing is changed if the settings have changed since. Fields that are read-only are refused; e-mail address, password, second factors and closing are changed on the pages under `/settings` only.',
        body: SettingsChanges,
        response: { 200: refTo(UserSettings, 'Your settings after the change.') },
      },
      config: {
        scopes: ['profile:modify'],
        refusals: {
          read_only: 422,
          language_invalid: 422,
          time_zone_invalid: 422,
          aspect_not_found: 404,
          aspects_invalid: 422,
          digest_hour_invalid: 422,
          mail_kind_invalid: 422,
          changed_since: 412,
        },
      },
    },
    async (request, reply) => {
      const { viewer, body } = request
      const textOf = (settings: AccountSettings) => String(reply.serializeInput(present(settings, viewer), '200'))
      const knownTags = request.headers['if-match']
      const changedSettings = await changeSettings(
        request.services,
        viewer.userId,
        readSettingsChange(body),
        (current) => {
          if (knownTags === undefined || namesTag(knownTags, buildWeakTag(textOf(current)))) return
          throw new Refusal('changed_since', 'The settings were changed in the meantime. Read them again.')
        },
      )
      reply.header('etag', buildWeakTag(textOf(changedSettings)))
      return present(changedSettings, viewer)
    },
  )
}
