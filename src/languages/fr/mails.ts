export const MAILS = {
  'mail.confirm_sign_up.subject': 'Confirmez votre adresse e-mail pour {pod}',
  'mail.confirm_sign_up.text':
    'Quelqu’un, probablement vous, veut ouvrir le compte {account} sur {pod} avec cette adresse e-mail.\n\nPour confirmer l’adresse, ouvrez cette page dans les 3 jours et appuyez sur son bouton. Si ce n’était pas vous, vous n’avez rien à faire.',
  'mail.confirm_sign_up.action': 'Confirmer l’adresse',
  'mail.already_registered.subject': 'Vous avez déjà un compte sur {pod}',
  'mail.already_registered.text':
    'Quelqu’un, probablement vous, a voulu ouvrir un compte sur {pod} avec cette adresse e-mail. Un compte existe déjà avec elle : connectez-vous avec son nom ou avec cette adresse.\n\nSi ce n’était pas vous, vous n’avez rien à faire.',
  'mail.sign_up_approved.subject': 'Votre compte sur {pod} est ouvert',
  'mail.sign_up_approved.text': 'Le compte {account} est ouvert. Vous pouvez maintenant vous connecter.',
  'mail.sign_up_rejected.subject': 'Votre inscription sur {pod}',
  'mail.sign_up_rejected.text':
    'La modération de {pod} n’a pas accepté votre inscription. Vos données ont été supprimées.',
  'mail.password_reset.subject': 'Réinitialisez votre mot de passe pour {pod}',
  'mail.password_reset.text':
    'Un nouveau mot de passe a été demandé pour {account}, probablement par vous.\n\nPour en définir un, ouvrez cette page dans les 2 heures. Si ce n’était pas vous, vous n’avez rien à faire.',
  'mail.password_reset.action': 'Définir un nouveau mot de passe',
  'mail.password_changed.subject': 'Le mot de passe de votre compte sur {pod} a changé',
  'mail.password_changed.text':
    'Le mot de passe de {account} a été modifié.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.confirm_email.subject': 'Confirmez votre nouvelle adresse e-mail pour {pod}',
  'mail.confirm_email.text':
    'Cette adresse devient l’adresse e-mail de {account} sur {pod}.\n\nPour la confirmer, ouvrez cette page dans la journée et appuyez sur son bouton. Si ce n’était pas vous, vous n’avez rien à faire.',
  'mail.confirm_email.action': 'Confirmer l’adresse',
  'mail.email_changing.subject': 'L’adresse e-mail de votre compte sur {pod} va changer',
  'mail.email_changing.text':
    'L’adresse e-mail de {account} est en train d’être changée de celle-ci en {address}.\n\nSi ce n’était pas vous, ouvrez cette page dans les 3 jours : cette adresse est rétablie, toutes les sessions prennent fin et vous définissez un nouveau mot de passe.',
  'mail.email_changing.action': 'Annuler le changement',
  'mail.new_sign_in.subject': 'Nouvelle connexion sur {pod}',
  'mail.new_sign_in.text':
    'Quelqu’un s’est connecté en tant que {account} avec un navigateur qui n’avait pas encore été utilisé.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.second_factor_on.subject': 'Le second facteur est activé pour {pod}',
  'mail.second_factor_on.text':
    'Se connecter en tant que {account} exige désormais un code.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.second_factor_off.subject': 'Le second facteur est désactivé pour {pod}',
  'mail.second_factor_off.text':
    'Se connecter en tant que {account} n’exige plus de code.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.recovery_codes_new.subject': 'Nouveaux codes de secours pour {pod}',
  'mail.recovery_codes_new.text':
    'De nouveaux codes de secours ont été créés pour {account}. Les anciens ne sont plus valables.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.recovery_code_used.subject': 'Un code de secours a été utilisé sur {pod}',
  'mail.recovery_code_used.text':
    'Un code de secours de {account} a servi à une connexion. Codes de secours restants : {count, number}.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.passkey_added.subject': 'Une clé d’accès a été ajoutée sur {pod}',
  'mail.passkey_added.text':
    'Une nouvelle clé d’accès permet de se connecter en tant que {account}.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.passkey_removed.subject': 'Une clé d’accès a été retirée sur {pod}',
  'mail.passkey_removed.text':
    'Une clé d’accès de {account} a été retirée.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.passkey_refused.subject': 'Une clé d’accès a été refusée sur {pod}',
  'mail.passkey_refused.text':
    'Une clé d’accès de {account} a été refusée, car elle a peut-être été copiée. Retirez-la dans les paramètres.',
  'mail.sign_ups_unattended.subject': 'Les inscriptions sur {pod} demandent maintenant une décision',
  'mail.sign_ups_unattended.text':
    'Aucun membre de la modération de {pod} n’a été actif depuis un certain temps. Désormais chaque inscription sans invitation attend une décision, jusqu’à ce qu’un administrateur y mette fin.',
  'mail.sign_ups_unattended.action': 'Ouvrir les inscriptions',
  'mail.moderation_notice.subject': 'Un avis de la modération de {pod}',
  'mail.moderation_notice.text': 'La modération de {pod} a un avis pour {account}. Connectez-vous pour le lire.',
  'mail.moderation_notice.action': 'Lire l’avis',
  'mail.account_closing.subject': 'Votre compte sur {pod} va être fermé',
  'mail.account_closing.text':
    'Le compte {account} sera définitivement fermé le {day}. D’ici là, rien n’est supprimé : pour garder le compte, connectez-vous.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.account_closing.action': 'Garder le compte',
  'mail.account_unused.subject': 'Votre compte sur {pod} va bientôt être fermé',
  'mail.account_unused.text':
    'Le compte {account} n’a pas été utilisé depuis longtemps. S’il n’est pas utilisé d’ici au {day}, il sera fermé.\n\nConnectez-vous ou utilisez une application pour le garder.',
  'mail.account_unused.action': 'Se connecter',
  'mail.account_unused_closing.subject': 'Votre compte sur {pod} va être fermé',
  'mail.account_unused_closing.text':
    'Personne n’a utilisé le compte {account} depuis longtemps ; il sera donc définitivement fermé le {day}. D’ici là, rien n’est supprimé.\n\nPour garder le compte, connectez-vous avant cette date.',
  'mail.account_unused_closing.action': 'Garder le compte',
  'mail.account_moved.subject': 'Votre compte sur {pod} a déménagé',
  'mail.account_moved.text':
    'Le compte {account} a déménagé vers {address}, avec ses publications, contacts et messages. Il n’est plus utilisable ici.\n\nSi ce n’était pas vous, quelqu’un possède une exportation de votre compte. Adressez-vous aux responsables du pod et prévenez vos contacts : un déménagement est définitif.',
  'mail.archive_ready.subject': 'Votre exportation de {pod} est prête',
  'mail.archive_ready.text':
    'L’exportation de {account} est prête. Elle est conservée 14 jours.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.archive_ready.action': 'La télécharger',
  'mail.archive_downloaded.subject': 'Une exportation de votre compte sur {pod} a été téléchargée',
  'mail.archive_downloaded.text':
    'Une exportation de {account} a été téléchargée. Quiconque possède le fichier peut lire ce qu’il contient.\n\nSi ce n’était pas vous, réinitialisez votre mot de passe et mettez fin à toutes les sessions dans les paramètres, ou adressez-vous aux responsables du pod.',
  'mail.notice.mentioned':
    '{others, plural, =0 {{name} vous a mentionné dans une publication} one {{name} et une autre personne vous ont mentionné dans une publication} many {{name} et # autres personnes vous ont mentionné dans une publication} other {{name} et # autres personnes vous ont mentionné dans une publication}}',
  'mail.notice.mentioned_in_comment':
    '{others, plural, =0 {{name} vous a mentionné dans un commentaire} one {{name} et une autre personne vous ont mentionné dans un commentaire} many {{name} et # autres personnes vous ont mentionné dans un commentaire} other {{name} et # autres personnes vous ont mentionné dans un commentaire}}',
  'mail.notice.started_sharing':
    '{others, plural, =0 {{name} a commencé à partager avec vous} one {{name} et une autre personne ont commencé à partager avec vous} many {{name} et # autres personnes ont commencé à partager avec vous} other {{name} et # autres personnes ont commencé à partager avec vous}}',
  'mail.notice.private_message':
    '{others, plural, =0 {{name} vous a envoyé un message} one {{name} et une autre personne vous ont envoyé un message} many {{name} et # autres personnes vous ont envoyé un message} other {{name} et # autres personnes vous ont envoyé un message}}',
  'mail.notice.comment_on_post':
    '{others, plural, =0 {{name} a commenté votre publication} one {{name} et une autre personne ont commenté votre publication} many {{name} et # autres personnes ont commenté votre publication} other {{name} et # autres personnes ont commenté votre publication}}',
  'mail.notice.also_commented':
    '{others, plural, =0 {{name} a commenté une publication que vous avez commentée} one {{name} et une autre personne ont commenté une publication que vous avez commentée} many {{name} et # autres personnes ont commenté une publication que vous avez commentée} other {{name} et # autres personnes ont commenté une publication que vous avez commentée}}',
  'mail.notice.liked':
    '{others, plural, =0 {{name} a aimé votre publication} one {{name} et une autre personne ont aimé votre publication} many {{name} et # autres personnes ont aimé votre publication} other {{name} et # autres personnes ont aimé votre publication}}',
  'mail.notice.liked_comment':
    '{others, plural, =0 {{name} a aimé votre commentaire} one {{name} et une autre personne ont aimé votre commentaire} many {{name} et # autres personnes ont aimé votre commentaire} other {{name} et # autres personnes ont aimé votre commentaire}}',
  'mail.notice.reshared':
    '{others, plural, =0 {{name} a repartagé votre publication} one {{name} et une autre personne ont repartagé votre publication} many {{name} et # autres personnes ont repartagé votre publication} other {{name} et # autres personnes ont repartagé votre publication}}',
  'mail.notice.contacts_birthday':
    '{others, plural, =0 {{name} fête son anniversaire} one {{name} et une autre personne fêtent leur anniversaire} many {{name} et # autres personnes fêtent leur anniversaire} other {{name} et # autres personnes fêtent leur anniversaire}}',
  'mail.notice.sentence': '{sentence}.',
  'mail.notice.action': 'Ouvrir',
  'mail.someone_reported.subject':
    '{count, plural, one {Un nouveau signalement sur {pod}} many {# nouveaux signalements sur {pod}} other {# nouveaux signalements sur {pod}}}',
  'mail.someone_reported.text':
    '{count, plural, one {Un nouveau signalement attend la modération.} many {# nouveaux signalements attendent la modération.} other {# nouveaux signalements attendent la modération.}}',
  'mail.someone_reported.action': 'Ouvrir les signalements',
  'mail.reported.post': 'Publications : {count}',
  'mail.reported.comment': 'Commentaires : {count}',
  'mail.reported.person': 'Personnes : {count}',
  'mail.reported.message': 'Messages : {count}',
  'mail.reported.cluster': 'Groupes de spam : {count}',
  'mail.sign_up_waiting.subject':
    '{count, plural, one {Une inscription attend sur {pod}} many {# inscriptions attendent sur {pod}} other {# inscriptions attendent sur {pod}}}',
  'mail.sign_up_waiting.text':
    '{count, plural, one {Une inscription attend une décision.} many {# inscriptions attendent une décision.} other {# inscriptions attendent une décision.}}',
  'mail.sign_up_waiting.action': 'Ouvrir les inscriptions',
  'mail.digest.subject':
    '{count, plural, one {Une nouvelle notification sur {pod}} many {# nouvelles notifications sur {pod}} other {# nouvelles notifications sur {pod}}}',
  'mail.digest.text': 'Ce que vous n’avez pas lu depuis le dernier résumé :',
  'mail.digest.more': '{count, plural, one {# autre} many {# autres} other {# autres}}',
  'mail.digest.action': 'Ouvrir vos notifications',
  'mail.account_footer': '{pod} envoie cet e-mail parce qu’il concerne un compte qui a cette adresse e-mail.',
  'mail.notice_footer':
    '{pod} envoie cet e-mail parce que vous n’avez pas désactivé les e-mails de notification de ce type.',
  'mail.unsubscribe': 'Arrêter ces e-mails',
} as const
